/** Whether an answer is still the same: a short hash of it, as an ETag and to send live pages only what changed. */
import { createHash } from 'node:crypto'

/** Without a top-level `at`: the time of looking differs each time, and what was seen may not. */
export function fingerprint(value: unknown): string {
  const seen = isRecord(value) && 'at' in value ? { ...value, at: undefined } : value
  return createHash('sha256')
    .update(JSON.stringify(seen) ?? '')
    .digest('base64url')
    .slice(0, 22)
}

/** Weak, since equal in meaning is all that it promises. */
export function weakEtag(value: unknown): string {
  return `W/"${fingerprint(value)}"`
}

export type TaggedAnswer = { text: string; etag: string }

const tagged = new WeakMap<object, TaggedAnswer>()

/** Of one and the same value, which many clients get: made once. Nothing changes an answer after it was given. */
export function taggedAnswer(value: unknown): TaggedAnswer {
  const made = isRecord(value) ? tagged.get(value) : undefined
  if (made) return made
  const answer = { text: JSON.stringify(value), etag: weakEtag(value) }
  if (isRecord(value)) tagged.set(value, answer)
  return answer
}

export function matchesEtag(ifNoneMatch: string | null | undefined, etag: string): boolean {
  if (!ifNoneMatch) return false
  if (ifNoneMatch.trim() === '*') return true
  const plain = (tag: string): string => tag.trim().replace(/^W\//, '')
  return ifNoneMatch.split(',').some((tag) => plain(tag) === plain(etag))
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
