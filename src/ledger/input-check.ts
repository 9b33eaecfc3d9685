/**
 * What the ledger refuses before anything is written: what only one of the databases would take, or what would come back
 * as something else. The checks are the same for both.
 */
import { createHash } from 'node:crypto'
import { UsageError } from '../base/errors.ts'
import { LANES, type NewJob } from './contract.ts'

const NAME_HINT =
  'Leave these characters out, or write the name in another way, such as in hexadecimal or base64.'
/** What people read keeps its place with this character; what programs compare is refused. */
const UNSTORABLE = '\uFFFD'

/** Text that identifies something: PostgreSQL keeps no NUL, and half of a surrogate pair becomes another character. */
export function checkName(what: string, text: string): void {
  if (typeof text !== 'string') throw new UsageError(`${what} must be a text, not ${described(text)}.`)
  if (text.includes('\0'))
    throw new UsageError(`${what} contains a NUL character (\\u0000).`, { hint: NAME_HINT })
  if (!text.isWellFormed())
    throw new UsageError(`${what} contains half of a surrogate pair.`, { hint: NAME_HINT })
}

/** Text by which rows are found: PostgreSQL's indexes take 2,704 bytes, of which the others in it need some. */
const INDEXED_BYTES_MAX = 2_000

/** The same of text by which rows are found. */
export function checkIndexed(what: string, text: string): void {
  checkName(what, text)
  if (isTooLong(text))
    throw new UsageError(`${what} is longer than ${INDEXED_BYTES_MAX} bytes.`, {
      hint: 'Use a shorter one, such as a hash of it.',
    })
}

function isTooLong(text: string): boolean {
  // No character has more than 3 bytes for each of its units.
  return text.length * 3 > INDEXED_BYTES_MAX && Buffer.byteLength(text) > INDEXED_BYTES_MAX
}

/** The name of an item, as both databases can find it again: a long one ends in a hash of all of it. */
export function storableItem(item: string): string {
  const text = storableText(item)
  if (!isTooLong(text)) return text
  const hash = createHash('sha256').update(item).digest('hex').slice(0, 32)
  const kept = Buffer.from(text).subarray(0, INDEXED_BYTES_MAX - 64)
  return `${storableText(kept.toString().replace(/\uFFFD*$/, ''))}… ${hash}`
}

/** Text that only people read, as both databases can keep it. */
export function storableText(text: string): string {
  return (text.includes('\0') ? text.replaceAll('\0', UNSTORABLE) : text).toWellFormed()
}

export function checkWhole(what: string, value: number, min = Number.MIN_SAFE_INTEGER): void {
  if (Number.isSafeInteger(value) && value >= min) return
  const least = min === Number.MIN_SAFE_INTEGER ? '' : ` of at least ${min}`
  throw new UsageError(`${what} must be a whole number${least}, not ${described(value)}.`, {
    hint: 'Round it; times are milliseconds since the epoch.',
  })
}

/** The names of what is checked are put together only when something is wrong. */
export function checkJob(job: NewJob): void {
  const { key, lane } = job
  if (key != null && (typeof key !== 'string' || key.includes('\0') || !key.isWellFormed() || isTooLong(key)))
    checkIndexed(`The key of ${job.kind}`, key)
  if (typeof job.segment === 'number') checkWhole(`segment of ${job.kind}`, job.segment, 1)
  if (typeof job.payload !== 'string')
    throw new UsageError(`The payload of ${job.kind} must be JSON text, not ${described(job.payload)}.`)
  checkNumber(job, 'runAt')
  checkNumber(job, 'priority')
  checkNumber(job, 'size', 0)
  checkNumber(job, 'items', 0)
  if (lane !== undefined && !LANES.includes(lane))
    throw new UsageError(
      `The lane of ${job.kind} must be one of ${LANES.join(', ')}, not ${described(lane)}.`,
    )
  for (const dep of job.after ?? [])
    if (typeof dep !== 'string') checkWhole(`A job that ${job.kind} waits for`, dep, 1)
}

function checkNumber(job: NewJob, name: 'runAt' | 'priority' | 'size' | 'items', min?: number): void {
  const value = job[name]
  if (value == null || (Number.isSafeInteger(value) && value >= (min ?? value))) return
  checkWhole(`${name} of ${job.kind}`, value, min)
}

/** A value in a message: what it is, without all that is in it. */
export function described(value: unknown): string {
  if (value === undefined || value === null || typeof value === 'number' || typeof value === 'boolean')
    return Object.is(value, -0) ? '-0' : String(value)
  if (typeof value === 'string') return JSON.stringify(value.length > 40 ? `${value.slice(0, 40)}…` : value)
  if (typeof value === 'bigint') return `${value}n (a BigInt)`
  if (typeof value !== 'object') return `a ${typeof value}`
  if (Array.isArray(value)) return 'an array'
  const { name } = (Object.getPrototypeOf(value)?.constructor ?? Object) as { name?: string }
  return name === 'Object' || !name ? 'an object' : `a ${name}`
}
