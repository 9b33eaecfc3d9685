/**
 * Bringing bytes to OneDrive: at once, or in fragments through an upload session.
 *
 * A session's address is a key: whoever has it can write that file. It gets no token, and stands in no message.
 * Until the last fragment nothing is visible to anybody.
 */
import { TidemarkError, UsageError } from '../../base/errors.ts'
import {
  type CallOptions,
  type Calls,
  fileTimes,
  itemPath,
  jsonBody,
  matchHeader,
  segment,
  type Target,
  targetPath,
} from './calls.ts'
import { sessionFull } from './errors.ts'
import { type DriveItem, itemSchema, progressSchema, sessionSchema } from './schema.ts'
import type { Answer } from './transport.ts'

export type Conflict = 'fail' | 'replace' | 'rename'

export type PutOptions = CallOptions & { ifMatch?: string | undefined; conflict?: Conflict | undefined }

export type SessionOptions = CallOptions & {
  conflict: Conflict
  ifMatch?: string | undefined
  modifiedMs?: number | undefined
  size: number
}

export type UploadSession = { url: string; expiresAtMs: number }

export type Fragment = {
  offset: number
  total: number
  body: Uint8Array | ReadableStream<Uint8Array> | AsyncIterable<Uint8Array>
  length: number
  signal?: AbortSignal | undefined
}

export type UploadProgress = { nextOffset: number; expiresAtMs: number }
export type FragmentAnswer = { item: DriveItem } | UploadProgress

/** Fragments are multiples of it, except the last. */
export const FRAGMENT_STEP_BYTES = 320 * 1024
/** The most that a fragment may have: less than 60 MiB. */
export const FRAGMENT_BYTES_MAX = 60 * 1024 * 1024 - FRAGMENT_STEP_BYTES
/** What clients send at once; Graph would take 250 MB. */
export const PUT_BYTES_MAX = 4 * 1024 * 1024
const PUT_BYTES_LIMIT = 250_000_000
const FILE_BYTES_MAX = 250 * 1024 ** 3
/** Where a session does not say how long it lives. */
const SESSION_MS = 15 * 60 * 1_000
/** Bytes are drawn from the budget in pieces of this size. */
const PIECE_BYTES = 256 * 1024

export async function putContent(
  calls: Calls,
  driveId: string,
  target: Target,
  body: Uint8Array,
  options: PutOptions,
): Promise<DriveItem> {
  if (body.length > PUT_BYTES_LIMIT) throw new UsageError(`${body.length} bytes are too many for one call.`)
  const { conflict, ifMatch, signal } = options
  await calls.spendBytes?.('up', body.length, signal, body.length)
  const query = conflict ? `?@microsoft.graph.conflictBehavior=${conflict}` : ''
  const path = `${targetPath(driveId, target, 'content')}${query}`
  const headers = { 'content-type': 'application/octet-stream', ...matchHeader(ifMatch) }
  const read = { schema: itemSchema, what: 'the uploaded file' }
  return await calls.json('content.put', { verb: 'PUT', path, body, headers }, read, options)
}

/**
 * Some drives refuse every tag when a session is created. Where the item still has that very tag, the session is
 * created without it: what may come in between, the caller has to look for before the last fragment either way.
 */
export async function createUploadSession(
  calls: Calls,
  driveId: string,
  target: Target,
  options: SessionOptions,
): Promise<UploadSession> {
  const { ifMatch, size } = options
  if (!Number.isSafeInteger(size) || size <= 0 || size > FILE_BYTES_MAX) {
    throw new UsageError(`A session cannot upload ${size} bytes.`)
  }
  try {
    return await openSession(calls, driveId, target, options)
  } catch (error) {
    const refused = error instanceof TidemarkError && error.code === 'precondition-failed'
    if (!refused || ifMatch === undefined || !('itemId' in target)) throw error
    const read = { schema: itemSchema, what: 'the file to replace' }
    const path = itemPath(driveId, target.itemId)
    const { eTag, cTag } = await calls.json('item.get', { verb: 'GET', path }, read, options)
    if (ifMatch !== eTag && ifMatch !== cTag) throw error
    return await openSession(calls, driveId, target, { ...options, ifMatch: undefined })
  }
}

async function openSession(
  calls: Calls,
  driveId: string,
  target: Target,
  options: SessionOptions,
): Promise<UploadSession> {
  const { conflict, ifMatch, modifiedMs } = options
  const item = {
    '@microsoft.graph.conflictBehavior': conflict,
    ...('name' in target && { name: target.name }),
    ...(modifiedMs !== undefined && { fileSystemInfo: fileTimes(modifiedMs) }),
  }
  if ('name' in target) segment(target.name)
  const { body, headers } = jsonBody({ item })
  const call = {
    verb: 'POST' as const,
    path: targetPath(driveId, target, 'createUploadSession'),
    headers: { ...headers, ...matchHeader(ifMatch) },
    ...(body !== undefined && { body }),
  }
  const read = { schema: sessionSchema, what: 'the upload session' }
  const session = await calls.json('uploadSession.create', call, read, options)
  return { url: calls.transport.transferUrl(session.url, 'The upload'), expiresAtMs: lives(calls, session) }
}

export async function uploadFragment(calls: Calls, url: string, fragment: Fragment): Promise<FragmentAnswer> {
  checkFragment(fragment)
  const { offset, length, total, signal } = fragment
  return await calls.paced('uploadSession.put', { signal }, async (paced) => {
    const { body } = fragment
    const direct = body instanceof Uint8Array && !calls.spendBytes
    const answer = await calls.transport.openAddress(
      {
        verb: 'PUT',
        url,
        asked: 'session',
        headers: { 'content-range': `bytes ${offset}-${offset + length - 1}/${total}` },
        ...(direct ? { body } : { body: metered(calls, fragment, paced), bodyBytes: length }),
      },
      paced,
    )
    if (answer.status === 202) return await progressOf(calls, answer)
    return { item: await answer.json(itemSchema, 'the uploaded file') }
  })
}

export async function uploadStatus(calls: Calls, url: string, options: CallOptions): Promise<UploadProgress> {
  return await calls.paced('uploadSession.get', options, async (signal) => {
    const answer = await calls.transport.openAddress({ verb: 'GET', url, asked: 'session' }, signal)
    return await progressOf(calls, answer)
  })
}

async function progressOf(calls: Calls, answer: Answer): Promise<UploadProgress> {
  const progress = await answer.json(progressSchema, 'the upload')
  const { nextOffset } = progress
  // All is there and it has not become a file: it never will.
  if (nextOffset === undefined) throw sessionFull()
  return { nextOffset, expiresAtMs: lives(calls, progress) }
}

/** One that has ended already is cancelled. */
export async function cancelUpload(calls: Calls, url: string, options: CallOptions): Promise<void> {
  await calls.paced('uploadSession.delete', options, async (signal) => {
    const ended = (status: number): boolean =>
      (status >= 200 && status < 300) || status === 404 || status === 410
    const call = { verb: 'DELETE' as const, url, asked: 'session' as const }
    const answer = await calls.transport.openAddress(call, signal, ended)
    await answer.skip()
  })
}

function lives(calls: Calls, { expiresAtMs }: { expiresAtMs?: number | undefined }): number {
  return expiresAtMs ?? calls.clock.now() + SESSION_MS
}

function checkFragment({ offset, length, total, body }: Fragment): void {
  const isLast = offset + length === total
  const fits =
    offset >= 0 &&
    length > 0 &&
    length <= FRAGMENT_BYTES_MAX &&
    offset + length <= total &&
    (isLast || length % FRAGMENT_STEP_BYTES === 0) &&
    (!(body instanceof Uint8Array) || body.length === length)
  if (!fits) throw new UsageError(`No fragment can have ${length} bytes at ${offset} of ${total}.`)
}

/** The fragment's bytes, drawn from the budget, and exactly as many as were announced. */
async function* metered(
  calls: Calls,
  { body, length, total }: Fragment,
  signal: AbortSignal | undefined,
): AsyncGenerator<Uint8Array> {
  let sent = 0
  for await (const piece of body instanceof Uint8Array ? piecesOf(body) : readable(body, signal)) {
    sent += piece.length
    if (sent > length) throw changedSource()
    const spent = calls.spendBytes?.('up', piece.length, signal, total)
    if (spent) await spent
    yield piece
  }
  if (sent !== length) throw changedSource()
}

/** Names failures of the source, which would pass for those of the connection. */
async function* readable(
  body: AsyncIterable<Uint8Array>,
  signal: AbortSignal | undefined,
): AsyncGenerator<Uint8Array> {
  try {
    yield* body
  } catch (error) {
    if (signal?.aborted || error instanceof TidemarkError) throw error
    const message = 'The file could not be read while it was uploaded'
    throw new TidemarkError(message, { kind: 'transient', code: 'file-unreadable', cause: error })
  }
}

/** Not more of the same, but another upload is called for. */
function changedSource(): TidemarkError {
  return new TidemarkError('The file changed while it was uploaded', {
    kind: 'transient',
    code: 'file-changed',
  })
}

function* piecesOf(bytes: Uint8Array): Generator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += PIECE_BYTES) yield bytes.subarray(at, at + PIECE_BYTES)
}
