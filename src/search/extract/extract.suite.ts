/** Reads a document as the thread does, for tests of formats. */
import assert from 'node:assert/strict'
import { DEFAULT_EXTRACT_LIMITS, type ExtractedText, type ExtractLimits, type Skipped } from './contract.ts'
import { readDocument } from './read-document.ts'

type Options = { mimeType?: string; limits?: Partial<ExtractLimits> }

async function read(content: string | Uint8Array, name: string, { mimeType, limits }: Options) {
  const bytes = typeof content === 'string' ? Buffer.from(content) : content
  return await readDocument({ bytes, name, mimeType }, { ...DEFAULT_EXTRACT_LIMITS, ...limits })
}

export async function textOf(
  content: string | Uint8Array,
  name: string,
  options: Options = {},
): Promise<ExtractedText> {
  const extraction = await read(content, name, options)
  assert.ok(extraction.kind === 'text', JSON.stringify(extraction))
  return extraction
}

export async function skippedOf(
  content: string | Uint8Array,
  name: string,
  options: Options = {},
): Promise<Skipped> {
  const extraction = await read(content, name, options)
  assert.ok(extraction.kind === 'skipped', JSON.stringify(extraction).slice(0, 300))
  return extraction
}
