/**
 * What a handler is given must be what was enqueued: payloads and checkpoints are kept as JSON, and what JSON drops or
 * turns into something else is refused where it comes in, with the place where it stands.
 */
import { isDeepStrictEqual } from 'node:util'
import { UsageError } from '../base/errors.ts'
import { described } from '../ledger/input-check.ts'
import type { AnyJobKind } from './job-kind.ts'

/** Beyond this it is a circle, or as good as one. */
const DEPTH_MAX = 1_000
const HINT =
  'Use texts, finite numbers, true, false, null, arrays and plain objects; a time as a number or an ISO text.'

type Fault = { path: string; found: string }

/** For what has a schema: it must also take what JSON made of it (`z.coerce.date()` does, `z.date()` does not). */
export function payloadText(kind: AnyJobKind, data: unknown): string {
  const fault = faultOf(data, 0)
  if (fault && !isReadBack(kind, data)) throw refusal(`The payload of ${kind.kind}`, fault)
  if (!fault && !isTakenAgain(kind, data)) {
    throw new UsageError(
      `The payload of ${kind.kind} is not valid a second time: its schema makes something else of what it has made.`,
      { hint: 'It is checked when it is enqueued and when it runs: leave transformations to the handler.' },
    )
  }
  return JSON.stringify(data)
}

export function jsonText(what: string, value: unknown): string {
  const fault = faultOf(value, 0)
  if (fault) throw refusal(what, fault)
  return JSON.stringify(value)
}

function refusal(what: string, { path, found }: Fault): UsageError {
  const place = path === '' ? '' : ` at ${path}`
  return new UsageError(`${what} does not survive as JSON:${place} it is ${found}.`, { hint: HINT })
}

function isTakenAgain(kind: AnyJobKind, data: unknown): boolean {
  const again = kind.payload.safeParse(data)
  return again.success && isSameJson(again.data, data)
}

/** Of plain JSON, where it is quicker than `isDeepStrictEqual`: every enqueue pays for it. */
function isSameJson(a: unknown, b: unknown): boolean {
  if (a === b) return true
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false
  if (Array.isArray(a)) {
    return Array.isArray(b) && a.length === b.length && a.every((one, at) => isSameJson(one, b[at]))
  }
  if (Object.getPrototypeOf(a) !== Object.getPrototypeOf(b)) return false
  const [left, right] = [a as Record<string, unknown>, b as Record<string, unknown>]
  for (const name in left) if (!isSameJson(left[name], right[name])) return false
  for (const name in right) if (right[name] !== undefined && left[name] === undefined) return false
  return true
}

function isReadBack(kind: AnyJobKind, data: unknown): boolean {
  try {
    return isTakenBack(kind, data, JSON.stringify(data))
  } catch {
    return false // a BigInt or a circle: JSON.stringify says so by throwing
  }
}

function isTakenBack(kind: AnyJobKind, data: unknown, text: string | undefined): boolean {
  if (text === undefined) return false
  const back = kind.payload.safeParse(JSON.parse(text))
  return back.success && isDeepStrictEqual(withoutUndefined(back.data), withoutUndefined(data))
}

function withoutUndefined(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutUndefined)
  if (value === null || typeof value !== 'object' || Object.getPrototypeOf(value) !== Object.prototype)
    return value
  const there = Object.entries(value).filter(([, inside]) => inside !== undefined)
  return Object.fromEntries(there.map(([name, inside]) => [name, withoutUndefined(inside)]))
}

/** The first place that is no JSON. A property that is undefined is none: JSON leaves it out, and so does reading it. */
function faultOf(value: unknown, depth: number): Fault | undefined {
  switch (typeof value) {
    case 'string':
    case 'boolean':
      return undefined
    case 'number':
      return Number.isFinite(value) ? undefined : { path: '', found: described(value) }
    case 'object':
      if (value === null) return undefined
      if (depth > DEPTH_MAX) return { path: '', found: 'nested too deep, or in a circle' }
      return Array.isArray(value) ? faultOfArray(value, depth) : faultOfObject(value, depth)
    default:
      return { path: '', found: described(value) }
  }
}

function faultOfArray(list: readonly unknown[], depth: number): Fault | undefined {
  for (let index = 0; index < list.length; index++) {
    const fault = faultOf(list[index], depth + 1)
    if (fault) return within(`[${index}]`, fault)
  }
  return undefined
}

function faultOfObject(value: object, depth: number): Fault | undefined {
  const prototype = Object.getPrototypeOf(value)
  if (prototype !== Object.prototype && prototype !== null) return { path: '', found: described(value) }
  for (const name in value) {
    const inside = (value as Record<string, unknown>)[name]
    const fault = inside === undefined ? undefined : faultOf(inside, depth + 1)
    if (fault) return within(name, fault)
  }
  return undefined
}

/** The innermost places say enough of a circle. */
const PATH_MAX = 200

function within(name: string, { path, found }: Fault): Fault {
  const rest = path === '' || path.startsWith('[') ? path : `.${path}`
  return { path: path.length > PATH_MAX ? path : `${name}${rest}`, found }
}
