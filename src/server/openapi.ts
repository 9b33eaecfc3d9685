/** The OpenAPI 3.1 document, from the same schemas by which requests are checked. */
import { z } from 'zod'
import type { App } from './app-env.ts'
import { matchesEtag, weakEtag } from './etag.ts'
import { EVENTS_PATH } from './events-route.ts'
import { problemSchema } from './problem.ts'
import type { AnyRoute, Route } from './route.ts'
import { SESSION_COOKIE } from './security.ts'

export const OPENAPI_PATH = '/api/openapi.json'

type Json = Record<string, unknown>
export type OpenApiDocument = Json & { paths: Record<string, Record<string, Json>> }

/** What a document says of a route, whoever handles it. */
export type Documented = Pick<Route['spec'], 'method' | 'path' | 'summary' | 'tag' | 'access'> & {
  params?: z.ZodObject | undefined
  query?: z.ZodObject | undefined
  body?: z.ZodType | undefined
  answer?: z.ZodType
  contentType?: string
  status?: number | undefined
  etag?: boolean | undefined
}

export const ownRoutes: readonly Documented[] = [
  {
    ...{ method: 'get', path: EVENTS_PATH, tag: 'live', access: 'read', contentType: 'text/event-stream' },
    summary: 'Live events; Last-Event-ID resumes',
  },
  {
    ...{ method: 'get', path: OPENAPI_PATH, tag: 'about', access: 'read', etag: true },
    ...{ summary: 'This document', answer: z.record(z.string(), z.unknown()) },
  },
]

export function documentedOf(route: AnyRoute): Documented {
  return route.spec
}

export function openApiDocument(
  routes: readonly Documented[],
  { version = '0.0.0' }: { version?: string | undefined } = {},
): OpenApiDocument {
  const paths: OpenApiDocument['paths'] = {}
  for (const route of routes) {
    paths[route.path] ??= {}
    paths[route.path]![route.method] = operationOf(route)
  }
  return {
    openapi: '3.1.0',
    info: { title: 'Tidemark', version, description: 'Streams, jobs, mail and their live events.' },
    servers: [{ url: '/' }],
    tags: [...new Set(routes.map(({ tag }) => tag))].map((name) => ({ name })),
    paths,
    // Nothing, where the server has no token.
    security: [{ bearer: [] }, { cookie: [] }, {}],
    components: {
      schemas: { Problem: schemaOf(problemSchema) },
      responses: {
        Problem: {
          description: 'What was wrong, and what to do',
          content: { 'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } } },
        },
      },
      parameters: {
        Intent: {
          ...{ name: 'X-Tidemark', in: 'header', required: true, schema: { type: 'string', const: '1' } },
          description: 'On everything that changes something: no other page can send it',
        },
      },
      securitySchemes: {
        bearer: { type: 'http', scheme: 'bearer', description: "The server's token" },
        cookie: { type: 'apiKey', in: 'cookie', name: SESSION_COOKIE, description: 'From POST /api/sign-in' },
      },
    },
  }
}

export function addOpenApi(app: App, document: OpenApiDocument): void {
  const text = JSON.stringify(document)
  const headers = {
    'content-type': 'application/json; charset=utf-8',
    'cache-control': 'private, no-cache',
    etag: weakEtag(document),
  }
  app.get(OPENAPI_PATH, (c) =>
    matchesEtag(c.req.header('if-none-match'), headers.etag)
      ? new Response(null, { status: 304, headers })
      : new Response(text, { headers }),
  )
}

function operationOf(route: Documented): Json {
  const { method, path, summary, tag, body, contentType, status = 200, etag } = route
  const writes = method !== 'get'
  const parameters = [
    ...pathParameters(route),
    ...parametersOf('query', route.query),
    ...(writes ? [{ $ref: '#/components/parameters/Intent' }] : []),
  ]
  const content = contentType
    ? { [contentType]: { schema: { type: 'string' } } }
    : { 'application/json': { schema: schemaOf(route.answer ?? z.unknown()) } }
  return {
    operationId: operationId(method, path),
    summary,
    tags: [tag],
    ...(parameters.length > 0 ? { parameters } : {}),
    ...(body
      ? {
          requestBody: {
            required: !body.safeParse({}).success,
            content: { 'application/json': { schema: schemaOf(body) } },
          },
        }
      : {}),
    responses: {
      [status]: { description: summary, content },
      ...(etag ? { 304: { description: 'The same as what If-None-Match names' } } : {}),
      default: { $ref: '#/components/responses/Problem' },
    },
  }
}

/** Each that stands in the path, whether or not the route says more about it. */
function pathParameters({ path, params }: Documented): Json[] {
  const said = parametersOf('path', params)
  const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name)
  return names.map(
    (name) =>
      said.find((one) => one.name === name) ?? {
        name,
        in: 'path',
        required: true,
        schema: { type: 'string' },
      },
  )
}

function parametersOf(place: 'path' | 'query', schema: z.ZodObject | undefined): Json[] {
  if (!schema) return []
  const { properties = {}, required = [] } = schemaOf(schema) as {
    properties?: Record<string, Json>
    required?: string[]
  }
  return Object.entries(properties).map(([name, property]) => ({
    ...{ name, in: place, required: place === 'path' || required.includes(name), schema: property },
    ...(typeof property.description === 'string' ? { description: property.description } : {}),
  }))
}

/** As it is sent: what a handler leaves out is left out, and what a client may leave out is optional. */
function schemaOf(schema: z.ZodType): Json {
  const { $schema: _, ...json } = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' }) as Json
  return json
}

/** `get /api/jobs/{id}` is `getJobsById`. */
function operationId(method: string, path: string): string {
  const words = path
    .replace(/^\/api\//, '/')
    .replaceAll(/\{(\w+)\}/g, (_, name: string) => `by-${name}`)
    .split(/[^A-Za-z0-9]+/)
    .filter((word) => word !== '')
  return method + words.map((word) => word[0]!.toUpperCase() + word.slice(1)).join('')
}
