/**
 * What a client sent, checked against a route's schemas. Everything is hostile: sizes, depth, characters that
 * databases refuse and names that are not there are turned away before a handler sees them.
 */
import type { z } from 'zod'
import { ProblemError } from '../app/problem.ts'

export const BODY_BYTES_MAX = 1_000_000
export const URL_LENGTH_MAX = 8_192
export const JSON_DEPTH_MAX = 32
const PARAMETERS_MAX = 100
const ERRORS_MAX = 20

type Issue = { path: readonly PropertyKey[]; message: string }
type Place = 'path' | 'query' | 'body'

/** The path's parameters, the query and the body as the schemas give them back. */
export async function readInput(
  request: Request,
  spec: { params?: z.ZodObject; query?: z.ZodObject; body?: z.ZodType },
  pathParams: Record<string, string>,
): Promise<{ params: unknown; query: unknown; body: unknown }> {
  checkNumbers('path', spec.params, pathParams)
  const params = await check('path', spec.params, pathParams)
  const asked = queryOf(new URL(request.url).searchParams, spec.query)
  checkNumbers('query', spec.query, asked)
  const query = await check('query', spec.query, asked)
  const body = spec.body === undefined ? undefined : await check('body', spec.body, await readJson(request))
  return { params, query, body }
}

async function check(place: Place, schema: z.ZodType | undefined, value: unknown): Promise<unknown> {
  const unfit = unfitText(value)
  if (unfit !== undefined) throw wrong(place, [{ path: unfit, message: 'holds characters that no text has' }])
  if (schema === undefined) return {}
  const parsed = await schema.safeParseAsync(value)
  if (parsed.success) return parsed.data
  throw wrong(place, parsed.error.issues)
}

function wrong(place: Place, issues: readonly Issue[]): ProblemError {
  const errors = issues.slice(0, ERRORS_MAX).map(({ path, message }) => ({
    where: [place, ...path.map(String)].join('.').slice(0, 200),
    message: message.slice(0, 500),
  }))
  const [first] = errors
  return new ProblemError(400, first ? `${first.where}: ${first.message}` : 'The request is not right.', {
    code: 'invalid-request',
    errors,
  })
}

/**
 * A name that is not known is a mistake that would otherwise go unnoticed: a filter that does not filter. A loose
 * schema says that others add names of their own, which are passed over.
 */
function queryOf(search: URLSearchParams, schema: z.ZodObject | undefined): Record<string, unknown> {
  const shape: Record<string, unknown> = schema?.shape ?? {}
  const known = Object.keys(shape)
  const isLoose = schema?.def.catchall?._zod.def.type === 'unknown'
  const query: Record<string, unknown> = Object.create(null)
  let n = 0
  for (const name of new Set(search.keys())) {
    n += 1
    if (n <= PARAMETERS_MAX && isLoose && !Object.hasOwn(shape, name)) continue
    if (n > PARAMETERS_MAX || !Object.hasOwn(shape, name)) {
      const list = known.length === 0 ? 'It takes none' : `It takes ${known.join(', ')}`
      throw wrong('query', [{ path: [name.slice(0, 60)], message: `there is no such parameter. ${list}.` }])
    }
    const values = search.getAll(name)
    if (isArray(shape[name])) query[name] = values
    else if (values.length === 1) query[name] = values[0]
    else throw wrong('query', [{ path: [name], message: 'is given more than once' }])
  }
  return query
}

/** As JSON writes numbers. Coercion alone takes an empty text for 0, and reads `0x1f` and blanks around. */
const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/

function checkNumbers(
  place: Place,
  schema: z.ZodObject | undefined,
  values: Readonly<Record<string, unknown>>,
): void {
  for (const [name, field] of Object.entries(schema?.shape ?? {})) {
    const value = values[name]
    if (typeof value !== 'string' || typeOf(field) !== 'number' || NUMBER.test(value)) continue
    throw wrong(place, [{ path: [name], message: 'is not a number' }])
  }
}

function isArray(schema: unknown): boolean {
  return typeOf(schema) === 'array'
}

/** Beneath what makes it optional or gives it a default. */
function typeOf(schema: unknown): string | undefined {
  let inner = schema as { def?: { type?: string; innerType?: unknown } } | undefined
  while (inner?.def?.innerType !== undefined) inner = inner.def.innerType as typeof inner
  return inner?.def?.type
}

/** An empty body is an empty object, so that a request without choices needs none. */
async function readJson(request: Request): Promise<unknown> {
  const text = await readText(request)
  if (text.trim() === '') return {}
  const type = request.headers.get('content-type') ?? ''
  if (!/^application\/(?:[\w.+-]+\+)?json\s*(?:;|$)/i.test(type)) {
    throw new ProblemError(415, 'The body must be JSON.', {
      hint: 'Send it with the header Content-Type: application/json.',
      code: 'not-json',
    })
  }
  if (depthOf(text) > JSON_DEPTH_MAX) {
    throw new ProblemError(400, `The body is nested more than ${JSON_DEPTH_MAX} levels deep.`, {
      code: 'too-deep',
    })
  }
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw new ProblemError(400, 'The body is not valid JSON.', { code: 'not-json', cause })
  }
}

export function checkBodyLength(request: Request): void {
  const length = Number(request.headers.get('content-length') ?? 0)
  if (length > BODY_BYTES_MAX) throw tooLarge()
}

async function readText(request: Request): Promise<string> {
  if (request.body === null) return ''
  const chunks: Uint8Array[] = []
  let bytes = 0
  const reader = request.body.getReader()
  for (;;) {
    const { done, value } = await readChunk(reader)
    if (done) break
    bytes += value.byteLength
    if (bytes > BODY_BYTES_MAX) {
      // Whoever sends gets its answer all the same; what is still under way is thrown away.
      reader.cancel().catch(() => {})
      throw tooLarge()
    }
    chunks.push(value)
  }
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(chunks))
  } catch (cause) {
    throw new ProblemError(400, 'The body is not UTF-8.', { code: 'not-json', cause })
  }
}

async function readChunk(
  reader: ReadableStreamDefaultReader<Uint8Array>,
): Promise<{ done: true; value?: undefined } | { done: false; value: Uint8Array }> {
  try {
    const { done, value } = await reader.read()
    return done ? { done: true } : { done: false, value }
  } catch (cause) {
    throw new ProblemError(400, 'The body ended before it was complete.', { code: 'cut-short', cause })
  }
}

function tooLarge(): ProblemError {
  return new ProblemError(413, `The body is larger than ${BODY_BYTES_MAX / 1_000_000} MB.`, {
    code: 'too-large',
    // What is left of the body is not worth reading.
    headers: { connection: 'close' },
  })
}

/** How deep brackets nest, without building anything. */
export function depthOf(text: string): number {
  let depth = 0
  let deepest = 0
  let quoted = false
  for (let at = 0; at < text.length; at++) {
    const char = text.charCodeAt(at)
    if (quoted) {
      if (char === BACKSLASH) at += 1
      else if (char === QUOTE) quoted = false
    } else if (char === QUOTE) quoted = true
    else if (char === OPEN_BRACKET || char === OPEN_BRACE) deepest = Math.max(deepest, ++depth)
    else if (char === CLOSE_BRACKET || char === CLOSE_BRACE) depth -= 1
  }
  return deepest
}

const QUOTE = 0x22
const BACKSLASH = 0x5c
const OPEN_BRACKET = 0x5b
const CLOSE_BRACKET = 0x5d
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d

/** PostgreSQL takes no NUL in texts, and half of a surrogate pair is no text; the path to the first of either. */
export function unfitText(value: unknown, path: readonly string[] = []): readonly string[] | undefined {
  if (typeof value === 'string') return value.includes('\0') || !value.isWellFormed() ? path : undefined
  if (typeof value !== 'object' || value === null) return undefined
  for (const [key, inner] of Object.entries(value)) {
    if (key.includes('\0') || !key.isWellFormed()) return path
    const found = unfitText(inner, [...path, key])
    if (found) return found
  }
  return undefined
}
