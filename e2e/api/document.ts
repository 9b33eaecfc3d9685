/** The served OpenAPI document: its form, its operations, and a validator for every answer that it describes. */
import assert from 'node:assert/strict'
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import addFormatsModule from 'ajv-formats'
import { z } from 'zod'

export type Schema = Record<string, unknown>

const text = z.string().min(1)
const schema = z.record(z.string(), z.unknown())
const mediaTypes = z.record(
  z.string().regex(/^[a-z]+\/[a-z0-9.+-]+$/),
  z.strictObject({ schema, 'x-events': z.record(z.string(), schema).optional() }),
)
const parameter = z.strictObject({
  name: text,
  in: z.enum(['path', 'query', 'header']),
  required: z.boolean(),
  schema,
  description: text,
})
const header = z.strictObject({ required: z.boolean(), schema })
const response = z.strictObject({
  description: text,
  headers: z.record(z.string(), header).optional(),
  content: mediaTypes.optional(),
})
const security = z.array(z.record(z.string(), z.array(z.string())))
const operation = z.strictObject({
  operationId: z.string().regex(/^[a-zA-Z0-9]+$/),
  summary: text,
  description: text.optional(),
  tags: z.array(text).min(1),
  'x-members': z.literal(true).optional(),
  security: security.optional(),
  parameters: z.array(parameter).default([]),
  requestBody: z.strictObject({ required: z.boolean(), content: mediaTypes }).optional(),
  responses: z.record(z.string().regex(/^(?:[1-5]\d\d|[1-5]XX)$/), response),
})

/** What of OpenAPI 3.1 this document uses; whatever else it had would fail. References are followed before. */
const openApi = z.strictObject({
  openapi: z.literal('3.1.0'),
  info: z.strictObject({ title: text, version: text, description: text }),
  servers: z.array(z.strictObject({ url: text })).min(1),
  tags: z.array(z.strictObject({ name: text })),
  paths: z.record(
    z.string().startsWith('/'),
    z.partialRecord(z.enum(['get', 'post', 'put', 'delete']), operation),
  ),
  security,
  components: z.strictObject({
    schemas: z.record(z.string(), schema),
    responses: z.record(z.string(), response),
    parameters: z.record(z.string(), parameter),
    securitySchemes: z.record(
      z.string(),
      z.strictObject({ type: z.literal('http'), scheme: z.literal('bearer'), description: text }),
    ),
  }),
})

export type Parameter = z.output<typeof parameter>
export type Operation = z.output<typeof operation> & { method: string; path: string }

/** As it is on the network, with references followed. */
export class ApiDocument {
  readonly raw: z.output<typeof openApi>
  readonly operations: readonly Operation[]
  readonly #ajv = createAjv()
  readonly #compiled = new Map<Schema, ValidateFunction>()

  constructor(served: unknown) {
    this.raw = openApi.parse(followed(served, served))
    this.operations = Object.entries(this.raw.paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, one]) => ({ ...one, method, path })),
    )
  }

  operation(id: string): Operation {
    const found = this.operations.find(({ operationId }) => operationId === id)
    assert.ok(found, `the document has no operation ${id}`)
    return found
  }

  /** Why a value is not of that form; undefined where it is. */
  mistake(wanted: Schema, value: unknown): string | undefined {
    const validate = this.#compiled.get(wanted) ?? this.#ajv.compile(closed(wanted) as Schema)
    this.#compiled.set(wanted, validate)
    return validate(value) ? undefined : this.#ajv.errorsText(validate.errors)
  }

  get events(): Readonly<Record<string, Schema>> {
    return this.operation('getEvents').responses['200']!.content!['text/event-stream']!['x-events'] ?? {}
  }

  get problem(): Schema {
    return this.raw.components.schemas.Problem!
  }
}

/** Strict: an unknown keyword, an unknown format or a type that cannot be would be a mistake in the document. */
function createAjv(): Ajv2020 {
  const ajv = new Ajv2020({ strict: true, allErrors: true })
  // The package is CommonJS: what Node imports is the function, what its types name is the module.
  ;(addFormatsModule as unknown as (ajv: Ajv2020) => void)(ajv)
  return ajv
}

function followed(value: unknown, root: unknown): unknown {
  if (Array.isArray(value)) return value.map((one) => followed(one, root))
  if (typeof value !== 'object' || value === null) return value
  if ('$ref' in value && typeof value.$ref === 'string') {
    assert.deepEqual(Object.keys(value), ['$ref'])
    assert.match(value.$ref, /^#\//)
    const parts = value.$ref.slice(2).split('/')
    const found = parts.reduce<unknown>((at, part) => (at as Schema | undefined)?.[part], root)
    assert.ok(found, `${value.$ref} leads nowhere`)
    return followed(found, root)
  }
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, followed(inner, root)]))
}

/** Objects have what they name and nothing else: a field that nobody described is a mistake as well. */
function closed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(closed)
  if (typeof value !== 'object' || value === null) return value
  const inner = Object.fromEntries(Object.entries(value).map(([key, one]) => [key, closed(one)]))
  return isObjectSchema(inner) ? { ...inner, additionalProperties: false } : inner
}

function isObjectSchema(value: Schema): boolean {
  return value.type === 'object' && 'properties' in value && !('additionalProperties' in value)
}
