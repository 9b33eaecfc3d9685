/** What routes take: names, numbers, and where a page goes on. */
import { z } from 'zod'
import { notFound, ProblemError } from './problem.ts'
import type { Services } from './services.ts'

const NAME_LENGTH_MAX = 500

export const nameText = z.string().min(1).max(NAME_LENGTH_MAX)
export const idNumber = z.coerce.number().int().min(1).max(Number.MAX_SAFE_INTEGER)
export const streamParams = z.object({
  name: nameText.describe('The name of the stream, such as `mail:ann@example.com`, encoded for an address'),
})

/** `what`: a job, a clean-up run. */
export const idParamsOf = (what: string) => z.object({ id: idNumber.describe(`The number of the ${what}`) })

/** Where a page ended: a number as it is, anything else as JSON in disguise. */
export function writeCursor(place: unknown): string {
  return typeof place === 'number' ? String(place) : Buffer.from(JSON.stringify(place)).toString('base64url')
}

/** Undefined for the first page. */
export function readCursor(cursor: string | undefined): number | undefined {
  if (cursor === undefined) return undefined
  const at = /^-?\d{1,16}$/.test(cursor) ? Number(cursor) : Number.NaN
  if (Number.isSafeInteger(at)) return at
  throw wrongCursor()
}

/** The same for places that are more than a number. */
export function readJsonCursor<S extends z.ZodType>(
  cursor: string | undefined,
  schema: S,
): z.output<S> | undefined {
  if (cursor === undefined) return undefined
  try {
    return schema.parse(JSON.parse(Buffer.from(cursor, 'base64url').toString()))
  } catch (cause) {
    throw wrongCursor(cause)
  }
}

function wrongCursor(cause?: unknown): ProblemError {
  return new ProblemError(400, 'The cursor is none that a page has given.', {
    code: 'cursor-invalid',
    hint: 'Begin with the first page, without a cursor.',
    cause,
  })
}

/** A page out of one row more than was asked for: that row says whether there is another page. */
export function pageOfRows<Row, View>(
  rows: readonly Row[],
  { limit, view, cursor }: { limit: number; view: (row: Row) => View; cursor: (last: Row) => unknown },
): { items: View[]; next: string | null } {
  const shown = rows.slice(0, limit)
  const last = shown.at(-1)
  return {
    items: shown.map(view),
    next: rows.length > limit && last !== undefined ? writeCursor(cursor(last)) : null,
  }
}

/** The number of a stream, or 404. */
export async function streamId({ ledger }: Pick<Services, 'ledger'>, name: string): Promise<number> {
  const stream = (await ledger.streamNames()).find((one) => one.name === name)
  if (stream) return stream.id
  throw unknownStream(name)
}

export function unknownStream(name: string): ProblemError {
  return notFound(`There is no stream called ${name}.`, { code: 'stream-unknown' })
}

/** As long as an address can be. */
export const accountText = z.string().min(1).max(320).describe('The address of a connected account')
