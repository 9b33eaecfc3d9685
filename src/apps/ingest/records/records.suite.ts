/** Objects in memory, given in pieces as a store might. */
import type { ObjectBody } from '../../../cloud/object-store.ts'
import type { OpenRecords, ReadFrom, ReadItem, ReadLimits, ReadOptions, ReadShape } from '../contract.ts'
import { openRecords } from './open-records.ts'

export const LIMITS: ReadLimits = { recordBytesMax: 64 * 1024, expansionMax: 2_000 }
export const FROM_START: ReadFrom = { records: 0, byte: null, line: null }
export const AUTO: ReadOptions = { format: 'auto', compression: 'auto' }

export type Reading = { shape: ReadShape; items: ReadItem[]; thrown: unknown; opened: number[] }

export function bodyOf(bytes: Uint8Array, chunk = 64 * 1024): (fromByte: number) => Promise<ObjectBody> {
  return async (fromByte) => ({
    version: { id: 'v' },
    sizeBytes: bytes.length,
    modifiedAtMs: null,
    contentType: null,
    contentEncoding: null,
    bytes: (async function* () {
      for (let at = fromByte; at < bytes.length; at += chunk) yield bytes.subarray(at, at + chunk)
    })(),
  })
}

export function input(
  bytes: Uint8Array,
  more: Partial<Parameters<OpenRecords>[0]> & { chunk?: number } = {},
): Parameters<OpenRecords>[0] {
  return {
    open: more.open ?? bodyOf(bytes, more.chunk),
    name: more.name ?? 'object',
    options: more.options ?? AUTO,
    shape: more.shape ?? null,
    from: more.from ?? FROM_START,
    limits: more.limits ?? LIMITS,
    signal: more.signal ?? new AbortController().signal,
  }
}

/** All that is told, and what it ended with. */
export async function readAll(
  bytes: Uint8Array,
  more: Partial<Parameters<OpenRecords>[0]> & { chunk?: number } = {},
): Promise<Reading> {
  const opened: number[] = []
  const wanted = input(bytes, more)
  const counted: Parameters<OpenRecords>[0] = {
    ...wanted,
    open: (fromByte) => {
      opened.push(fromByte)
      return wanted.open(fromByte)
    },
  }
  const items: ReadItem[] = []
  let shape: ReadShape = { format: 'text', compression: 'none', header: null }
  let thrown: unknown
  try {
    const reading = await openRecords(counted)
    shape = reading.shape
    for await (const item of reading.items) items.push(item)
  } catch (error) {
    thrown = error
  }
  return { shape, items, thrown, opened }
}

export async function valuesOf(
  bytes: Uint8Array | string,
  more: Partial<Parameters<OpenRecords>[0]> & { chunk?: number } = {},
): Promise<unknown[]> {
  const { items, thrown } = await readAll(Buffer.from(bytes), more)
  if (thrown !== undefined) throw thrown
  return items.map((item) => (item.kind === 'record' ? item.value : item.code))
}
