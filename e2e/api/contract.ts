/** Calls operations by their id, and holds every answer against what the document says of it. */
import assert from 'node:assert/strict'
import type { ApiDocument, Operation } from './document.ts'

export type CallInput = {
  params?: Record<string, string | number>
  query?: Record<string, string | number>
  body?: unknown
  headers?: Record<string, string>
  method?: string
}

/** An answer, whose form has been held against the document before. */
// biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every form
export type Body = any

export type Answer = { status: number; type: string; headers: Headers; body: Body }

export type Ask = (path: string, init: RequestInit) => Promise<Response>

export class Contract {
  readonly document: ApiDocument
  readonly #ask: Ask
  /** `getJobs 200` */
  readonly seen = new Set<string>()

  constructor(document: ApiDocument, ask: Ask) {
    this.document = document
    this.#ask = ask
  }

  /** Of `wanted` status; fails where the answer is not what the document says. */
  async call(id: string, wanted: number, input: CallInput = {}): Promise<Answer> {
    const operation = this.document.operation(id)
    const answer = await this.check(operation, await this.send(operation, input))
    assert.equal(answer.status, wanted, `${id}: ${JSON.stringify(answer.body)}`)
    return answer
  }

  send(operation: Operation, input: CallInput): Promise<Response> {
    const { body } = input
    const headers: Record<string, string> = { ...input.headers }
    if (operation.method !== 'get') headers['x-tidemark'] ??= '1'
    if (body !== undefined) headers['content-type'] ??= 'application/json'
    return this.#ask(requestPath(operation, input), {
      method: input.method ?? operation.method.toUpperCase(),
      headers,
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    })
  }

  async check(operation: Operation, response: Response): Promise<Answer> {
    const { status, headers } = response
    const what = `${operation.operationId} ${status}`
    const said = operation.responses[String(status)]
    const bytes = Buffer.from(await response.arrayBuffer())
    assert.ok(said, `${what} is not in the document: ${bytes.toString().slice(0, 500)}`)
    assert.equal(headers.get('x-content-type-options'), 'nosniff', what)
    for (const [name, { required }] of Object.entries(said.headers ?? {})) {
      assert.ok(!required || headers.has(name), `${what} has no ${name}`)
    }
    this.seen.add(what)
    const type = (headers.get('content-type') ?? '').split(';')[0]!
    if (said.content === undefined) {
      assert.equal(bytes.length, 0, `${what} has a body`)
      return { status, type, headers, body: undefined }
    }
    const content = said.content[type]
    assert.ok(content, `${what} is ${type}, and not ${Object.keys(said.content).join()}`)
    const isJson = /[/+]json$/.test(type)
    const body = isJson ? JSON.parse(bytes.toString()) : bytes
    const mistake = this.document.mistake(content.schema, isJson ? body : bytes.toString('latin1'))
    assert.equal(mistake, undefined, `${what}: ${JSON.stringify(body).slice(0, 2_000)}`)
    return { status, type, headers, body }
  }

  /** For an answer without end: only what stands before its body. */
  checkHead(operation: Operation, { status, headers }: Response): void {
    const type = (headers.get('content-type') ?? '').split(';')[0]!
    assert.ok(
      operation.responses[String(status)]?.content?.[type],
      `${operation.operationId} ${status} ${type}`,
    )
    this.seen.add(`${operation.operationId} ${status}`)
  }

  /** Operations, and successes of theirs, that were never seen. */
  get unseen(): string[] {
    const wanted = this.document.operations.flatMap(({ operationId, responses }) =>
      Object.keys(responses)
        .filter((status) => /^[123]/.test(status))
        .map((status) => `${operationId} ${status}`),
    )
    return wanted.filter((one) => !this.seen.has(one))
  }

  /** All items of a list, page by page; fails where one comes twice. */
  async all(id: string, input: CallInput, key: (item: Body) => string | number): Promise<Body[]> {
    const items = new Map<string | number, Body>()
    let cursor: string | null = null
    for (let pages = 0; pages < PAGES_MAX; pages++) {
      const query: CallInput['query'] = { ...input.query, ...(cursor === null ? {} : { cursor }) }
      const { body }: Answer = await this.call(id, 200, { ...input, query })
      for (const item of body.items) {
        assert.ok(!items.has(key(item)), `${id} gave ${key(item)} twice`)
        items.set(key(item), item)
      }
      cursor = body.next
      if (cursor === null) return [...items.values()]
    }
    throw new Error(`${id} has more than ${PAGES_MAX} pages`)
  }
}

const PAGES_MAX = 10_000

function requestPath({ path }: Operation, { params = {}, query = {} }: CallInput): string {
  const filled = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    const value = params[name]
    assert.ok(value !== undefined, `${path} needs ${name}`)
    return encodeURIComponent(value)
  })
  const search = new URLSearchParams(Object.entries(query).map(([name, value]) => [name, String(value)]))
  return search.size === 0 ? filled : `${filled}?${search}`
}
