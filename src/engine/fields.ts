/** A misspelled field would be passed over in silence: it is refused, with the names that exist. */
import { UsageError } from '../base/errors.ts'
import type { NewSegment, SegmentCount, Work } from '../ledger/contract.ts'
import { described } from '../ledger/input-check.ts'

/** Every field of a type, so that the compiler asks for new ones. */
export type Fields<T> = Readonly<Record<keyof T, true>>

export const BAD_FIELD = 'unknown-field'

/** `what` it is about, such as a job kind. */
export function checkFields<T>(what: string, value: object, known: Fields<T>): void {
  if (value === null || typeof value !== 'object' || Array.isArray(value)) {
    throw new UsageError(`${what}: ${described(value)} stands where an object with fields should.`, {
      code: BAD_FIELD,
      hint: `Fields: ${Object.keys(known).join(', ')}.`,
    })
  }
  for (const name in value) {
    if (Object.hasOwn(known, name)) continue
    throw new UsageError(`${what}: there is no field called "${name}".`, {
      code: BAD_FIELD,
      hint: `Fields: ${Object.keys(known).join(', ')}.`,
    })
  }
}

const SEGMENT_FIELDS: Fields<NewSegment> = {
  streamId: true,
  from: true,
  to: true,
  mark: true,
  label: true,
  ref: true,
}
const COUNT_FIELDS: Fields<SegmentCount> = {
  segment: true,
  listed: true,
  stored: true,
  gone: true,
  skipped: true,
  seal: true,
}

/** What is not counted keeps a mark from moving, for ever. */
export function checkSegmentFields(
  what: string,
  { segments, counts }: Pick<Work, 'segments' | 'counts'>,
): void {
  for (const segment of segments ?? []) checkFields(`A segment of ${what}`, segment, SEGMENT_FIELDS)
  for (const count of counts ?? []) checkFields(`A count of ${what}`, count, COUNT_FIELDS)
}
