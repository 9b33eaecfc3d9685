/**
 * Where a page ends. It says nothing but a place in an order, and belongs to one query of one reader: with another it is
 * refused, so that nobody pages through what somebody else asked for.
 */
import { createHash } from 'node:crypto'
import { z } from 'zod'
import { UsageError } from '../../base/errors.ts'
import type { SearchRequest } from '../contract.ts'

const CURSOR_CHARS_MAX = 500

/** `isByMeaning`: whether the first page was. Those that follow are by the same, or they would be pages of something else. */
const cursorSchema = z.object({
  fingerprint: z.string(),
  nowMs: z.number(),
  isByMeaning: z.boolean(),
  by: z.number(),
  id: z.number(),
})

export type Cursor = z.infer<typeof cursorSchema>

export function fingerprintOf({
  text,
  reader,
  mode,
  sort,
  filters,
  copies,
}: Omit<SearchRequest, 'signal'>): string {
  const principals = [...reader.principals].sort()
  const asked = JSON.stringify([
    text,
    principals,
    mode ?? 'auto',
    sort ?? 'relevance',
    filters ?? {},
    copies ?? '',
  ])
  return createHash('sha256').update(asked).digest('base64url').slice(0, 16)
}

export function writeCursor(cursor: Cursor): string {
  return Buffer.from(JSON.stringify(cursor)).toString('base64url')
}

export function readCursor(text: string, fingerprint: string): Cursor {
  try {
    if (text.length > CURSOR_CHARS_MAX) throw new Error('too long')
    const cursor = cursorSchema.parse(JSON.parse(Buffer.from(text, 'base64url').toString()))
    if (cursor.fingerprint === fingerprint) return cursor
  } catch {
    // Whatever is wrong with it, it is none of ours.
  }
  throw new UsageError('The cursor does not belong to this search.', {
    code: 'bad-cursor',
    hint: 'Ask for the first page again, without a cursor.',
  })
}
