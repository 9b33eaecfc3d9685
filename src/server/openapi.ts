/** The OpenAPI 3.1 document, from the same schemas by which requests are checked. */
import { z } from 'zod'
import { problemSchema, statusTitle } from '../app/problem.ts'
import type { AnyRoute, Route } from '../app/route.ts'
import type { App } from './app-env.ts'
import { matchesEtag, weakEtag } from './etag.ts'
import { EVENTS_PATH } from './events-route.ts'
import { needsToken } from './security.ts'

export const OPENAPI_PATH = '/api/openapi.json'

const ABOUT = [
  'Streams, jobs, mail and their live events.',
  'Times whose names end in `Ms`, or in `At`, are milliseconds since the epoch.',
  'A list that has a `next` goes on: send it as `cursor`, with the same other parameters.',
  'Where `x-members` is true, members may ask as well, and are answered with what is theirs; all else is for admins.',
  'A parameter that is not named here is refused. What refuses says why, and what to do, as application/problem+json.',
].join(' ')

type Json = Record<string, unknown>
export type OpenApiDocument = Json & { paths: Record<string, Record<string, Json>> }

/** What a document says of a route, whoever handles it. */
export type Documented = Pick<
  Route['spec'],
  'method' | 'path' | 'summary' | 'description' | 'tag' | 'errors' | 'access'
> & {
  params?: z.ZodObject | undefined
  query?: z.ZodObject | undefined
  body?: z.ZodType | undefined
  answer?: z.ZodType
  contentType?: string
  moreTypes?: readonly string[]
  status?: number | undefined
  etag?: boolean | undefined
  errorPages?: readonly number[] | undefined
  /** Further parameters, in headers. */
  headers?: readonly Json[]
}

/** The forms of live events, by their type. */
export type EventSchemas = Readonly<Record<string, z.ZodType>>

export const ownRoutes: readonly Documented[] = [
  {
    method: 'get',
    path: EVENTS_PATH,
    access: 'member',
    tag: 'live',
    contentType: 'text/event-stream',
    summary: 'Live events; Last-Event-ID resumes',
    description:
      'Server-sent events. The first is always `hello`; `x-events` names all types and the form of their data. ' +
      'Of types that begin with `snapshot` only the newest counts. A comment comes every 15 s while all is quiet. ' +
      'Members are told `news` alone, and nothing is resumed for them.',
    query: z.object({
      lastEventId: z.string().max(500).optional().describe('As the header, for a page that cannot send one'),
    }),
    headers: [
      {
        name: 'Last-Event-ID',
        in: 'header',
        required: false,
        schema: { type: 'string' },
        description: 'The id of the last event that was seen: all that came after it follows',
      },
    ],
    errors: [503],
  },
  {
    method: 'get',
    path: OPENAPI_PATH,
    access: 'member',
    tag: 'about',
    etag: true,
    summary: 'This document',
    answer: z.record(z.string(), z.unknown()),
  },
]

export function documentedOf(route: AnyRoute): Documented {
  return route.spec
}

export function openApiDocument(
  routes: readonly Documented[],
  { version = '0.0.0', events = {} }: { version?: string | undefined; events?: EventSchemas } = {},
): OpenApiDocument {
  const paths: OpenApiDocument['paths'] = {}
  for (const route of routes) {
    paths[route.path] ??= {}
    paths[route.path]![route.method] = operationOf(route, events)
  }
  return {
    openapi: '3.1.0',
    info: { title: 'Tidemark', version, description: ABOUT },
    servers: [{ url: '/' }],
    tags: [...new Set(routes.map(({ tag }) => tag))].map((name) => ({ name })),
    paths,
    security: [{ bearer: [] }],
    components: {
      schemas: { Problem: schemaOf(problemSchema) },
      responses: problemResponses(routes),
      parameters: {
        IfNoneMatch: {
          name: 'If-None-Match',
          in: 'header',
          required: false,
          schema: { type: 'string' },
          description: 'The ETag of an answer before: 304 where nothing has changed since',
        },
        Intent: {
          name: 'X-Tidemark',
          in: 'header',
          required: true,
          schema: { type: 'string', const: '1' },
          description: 'On everything that changes something: no other page can send it',
        },
      },
      securitySchemes: {
        bearer: {
          type: 'http',
          scheme: 'bearer',
          description:
            "The server's token, from the file server.token, a user's own token, or a session from POST /api/sign-in",
        },
        signed: {
          type: 'http',
          scheme: 'bearer',
          description: 'What another service signed for this server; the route says which',
        },
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

function operationOf(route: Documented, events: EventSchemas): Json {
  const { method, path, summary, description, tag, body, status = 200, etag } = route
  const parameters = [
    ...pathParameters(route),
    ...parametersOf('query', route.query),
    ...(route.headers ?? []),
    ...(etag ? [{ $ref: '#/components/parameters/IfNoneMatch' }] : []),
    ...(method === 'get' || route.access === 'signed' ? [] : [{ $ref: '#/components/parameters/Intent' }]),
  ]
  return {
    operationId: operationId(method, path),
    summary,
    ...(description === undefined ? {} : { description }),
    tags: [tag],
    ...(route.access === 'member' ? { 'x-members': true } : {}),
    ...(route.access === 'signed' ? { security: [{ signed: [] }] } : {}),
    ...(needsToken(path) ? {} : { security: [] }),
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
      [status]: {
        description: summary,
        ...(etag ? { headers: { ETag: { required: true, schema: { type: 'string' } } } } : {}),
        content: answerContent(route, events),
      },
      ...(etag ? { 304: { description: 'The same as what If-None-Match names' } } : {}),
      ...refusalsOf(route),
    },
  }
}

function answerContent(route: Documented, events: EventSchemas): Json {
  const { contentType } = route
  if (!contentType) return { 'application/json': { schema: schemaOf(route.answer ?? z.unknown()) } }
  const types = Object.entries(events).map(([type, schema]) => [type, schemaOf(schema)])
  const extra = contentType === 'text/event-stream' ? { 'x-events': Object.fromEntries(types) } : {}
  const others = (route.moreTypes ?? []).map((type) => [type, { schema: { type: 'string' } }])
  return { [contentType]: { schema: { type: 'string' }, ...extra }, ...Object.fromEntries(others) }
}

/** What every request may be answered with, what this one may be besides, and what goes wrong inside. */
function refusalsOf(route: Documented): Json {
  const pages = route.errorPages ?? []
  const refusals: [string, Json][] = errorsOf(route)
    .filter((status) => !pages.includes(status))
    .map((status) => [String(status), { $ref: `#/components/responses/Problem${status}` }])
  for (const status of pages) {
    const content = { [route.contentType ?? 'text/html']: { schema: { type: 'string' } } }
    refusals.push([String(status), { description: statusTitle(status), content }])
  }
  return { ...Object.fromEntries(refusals), '5XX': { $ref: '#/components/responses/Problem' } }
}

function errorsOf({ method, path, body, errors = [] }: Documented): number[] {
  const statuses = new Set([400, 403, 414, ...errors])
  if (needsToken(path)) statuses.add(401)
  if (path.includes('{')) statuses.add(404)
  if (method !== 'get') statuses.add(413)
  if (body) statuses.add(415)
  return [...statuses].sort((a, b) => a - b)
}

function problemResponses(routes: readonly Documented[]): Json {
  const content = { 'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } } }
  const statuses = new Set(routes.flatMap(errorsOf))
  const named = [...statuses].sort().map((status) => [`Problem${status}`, statusTitle(status)])
  const all = [...named, ['Problem', 'Something went wrong inside, or is not available just now']]
  return Object.fromEntries(all.map(([name, description]) => [name, { description, content }]))
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
    name,
    in: place,
    required: place === 'path' || required.includes(name),
    schema: property,
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
