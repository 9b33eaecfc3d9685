import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openApiDocument } from './openapi.ts'
import { startCore, TOKEN } from './server.suite.ts'

type Json = Record<string, unknown>
type Parameter = { $ref?: string; name?: string; in?: string; required?: boolean; schema?: Json }
type Operation = {
  operationId: string
  parameters?: Parameter[]
  requestBody?: { required: boolean; content: Record<string, { schema: Json }> }
  responses: Record<
    string,
    { $ref?: string; description?: string; content?: Record<string, { schema: Json }> }
  >
}
type Document = Json & {
  openapi: string
  info: { title: string; version: string }
  paths: Record<string, Record<string, Operation>>
  components: { securitySchemes: Json }
  tags: { name: string }[]
}

const core = await startCore({ token: TOKEN, version: '1.2.3' })
const headers = { authorization: `Bearer ${TOKEN}` }
const response = await core.request('/api/openapi.json', { headers })
const document = (await response.json()) as Document
await core.close()

const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ path, method, ...operation })),
)

/** Every object within, with the references it holds. */
function references(value: unknown): string[] {
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([key, inner]) =>
    key === '$ref' && typeof inner === 'string' ? [inner] : references(inner),
  )
}

test('the document has the form of OpenAPI 3.1', () => {
  assert.equal(document.openapi, '3.1.0')
  assert.deepEqual([document.info.title, document.info.version], ['Tidemark', '1.2.3'])
  assert.deepEqual(Object.keys(document.components.securitySchemes), ['bearer', 'signed'])
  assert.equal(new Set(operations.map(({ operationId }) => operationId)).size, operations.length)
  for (const { path, method, responses, parameters = [] } of operations) {
    assert.match(path, /^\/[\w/{}.-]+$/)
    assert.match(method, /^(?:get|post|put|delete)$/)
    assert.ok(Object.keys(responses).some((status) => /^2\d\d$/.test(status)))
    assert.equal(responses['5XX']?.$ref, '#/components/responses/Problem')
    assert.equal(responses['400']?.$ref, '#/components/responses/Problem400')
    for (const [status, one] of Object.entries(responses)) {
      assert.ok(one.$ref ?? one.description, `${path} ${status}`)
    }
    const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name)
    const said = parameters.filter((one) => one.in === 'path')
    assert.deepEqual(
      said.map(({ name }) => name),
      inPath,
    )
    assert.ok(said.every(({ required, schema }) => required && schema))
  }
})

test('every reference leads somewhere', () => {
  for (const reference of references(document)) {
    assert.match(reference, /^#\//)
    const found = reference
      .slice(2)
      .split('/')
      .reduce<unknown>((at, part) => (at as Json | undefined)?.[part], document)
    assert.ok(found, reference)
  }
})

test('schemas are those of the routes', () => {
  const list = document.paths['/api/things']!.get!
  const limit = list.parameters?.find(({ name }) => name === 'limit')
  assert.equal(limit?.required, false)
  assert.deepEqual(limit?.schema, { default: 50, type: 'integer', minimum: 1, maximum: 500 })
  const create = document.paths['/api/things']!.post!
  assert.equal(create.requestBody?.required, true)
  assert.deepEqual(create.requestBody?.content['application/json']?.schema.required, ['id', 'name'])
  assert.ok(create.responses['202'])
  assert.ok(create.parameters?.some(({ $ref }) => $ref === '#/components/parameters/Intent'))
  assert.equal(document.paths['/api/sync']!.post!.requestBody?.required, false)
  assert.ok(document.paths['/api/overview']!.get!.responses['304'])
})

test('what the server itself answers is in it as well', () => {
  for (const path of ['/api/tickets', '/api/sign-in', '/api/sign-out', '/api/events', '/api/openapi.json']) {
    assert.ok(document.paths[path], path)
  }
  assert.equal(openApiDocument([]).openapi, '3.1.0')
})
