/**
 * How the API is written: each route says what it takes and what it answers, as zod schemas. From these come the
 * checks of what clients send, the OpenAPI document, and the tests that hold every answer against it.
 */
import type { z } from 'zod'
import type { Services } from './services.ts'
import type { RequestUser } from './user.ts'

export type Method = 'get' | 'post' | 'put' | 'delete'

/** With parameters in braces: `GET /api/jobs/{id}`. What changes something is not a GET: see server/security.ts. */
type Address = `${Uppercase<Method>} /${string}`

type Shape = z.ZodObject | undefined
type Parsed<S extends Shape> = S extends z.ZodObject ? z.output<S> : Record<string, never>

type About<P extends Shape, Q extends Shape> = {
  summary: string
  /** What the summary leaves open. */
  description?: string
  /** Groups routes in the document. The first word of the path behind `/api` if left out. */
  tag?: string
  /**
   * Admins alone where it is left out.
   * - member: members may ask, too, and the handler answers with what is theirs
   * - signed: a service that knows no token of ours sends it, and proves who it is by what it sends as `bearer`, which
   *   the handler checks before anything else
   */
  access?: 'member' | 'signed'
  params?: P
  query?: Q
  /** Changes nothing, whatever its method: what pages share of the ledger holds. */
  onlyReads?: true
  /** Answers with an ETag and 304; for what clients ask again and again. */
  etag?: boolean
  /** Statuses of its refusals besides those that every route of its form has: see openapi.ts. */
  errors?: readonly number[]
}

type Answered<B extends z.ZodType | undefined, A extends z.ZodType> = {
  body?: B
  answer: A
  /** 200 if left out; 202 for what goes on in the background. */
  status?: 200 | 201 | 202
}

type Downloaded = {
  contentType: string
  /** Others that it may be instead: a picture is of one of several. */
  moreTypes?: readonly string[]
  /** Statuses that come as a page of that type and not as a problem: for what people look at. */
  errorPages?: readonly number[]
}

type Input<P extends Shape, Q extends Shape, B extends z.ZodType | undefined> = {
  params: Parsed<P>
  query: Parsed<Q>
  body: B extends z.ZodType ? z.output<B> : undefined
  /** Aborted when the client goes away. */
  signal: AbortSignal
  /** Who asks; nobody where the address lies outside of what is guarded: see server/security.ts. */
  user: RequestUser
  /** What was sent as such, unchecked; only where the access is `signed`. */
  bearer: string | undefined
  /** Under which the client reaches this server: `http://127.0.0.1:8080`. */
  origin: string
}

type Handler<Answer> = (input: never, services: never) => Promise<Answer>
type Placed = { method: Method; path: string; tag: string }

/** A route with its types forgotten, as the list of all routes holds it. */
export type Route = {
  kind: 'json'
  spec: Placed & About<Shape, Shape> & Answered<z.ZodType | undefined, z.ZodType>
  handle: Handler<unknown>
}

/** Bytes instead of JSON: an attachment, a raw message, a page of sanitised HTML. */
export type Download = {
  kind: 'download'
  spec: Placed & About<Shape, Shape> & Downloaded
  handle: Handler<DownloadAnswer>
}

export type AnyRoute = Route | Download

export type DownloadAnswer = {
  bytes: Uint8Array | string
  contentType: string
  /** 200 if left out. */
  status?: number
  /** Saved under this name; shown in place if left out. Made safe by the server. */
  fileName?: string
  /** Further headers, such as a stricter content security policy. */
  headers?: Record<string, string>
}

/** Of an app, whose handlers are also given the app itself, under its name. */
export function routesOf<S extends Services>() {
  return {
    route<
      A extends z.ZodType,
      P extends Shape = undefined,
      Q extends Shape = undefined,
      B extends z.ZodType | undefined = undefined,
    >(
      address: Address,
      {
        handle,
        ...about
      }: About<P, Q> &
        Answered<B, A> & { handle: (input: Input<P, Q, B>, services: S) => Promise<z.input<A>> },
    ): Route {
      return { kind: 'json', spec: { ...placed(address), ...about }, handle: handle as Route['handle'] }
    },
    download<P extends Shape = undefined, Q extends Shape = undefined>(
      address: Address,
      {
        handle,
        ...about
      }: About<P, Q> &
        Downloaded & { handle: (input: Input<P, Q, undefined>, services: S) => Promise<DownloadAnswer> },
    ): Download {
      return {
        kind: 'download',
        spec: { ...placed(address), ...about },
        handle: handle as Download['handle'],
      }
    },
  }
}

/** Of the engine and of what is written once over all apps. */
export const { route, download } = routesOf<Services>()

export function placed(address: Address): Placed {
  const [method = '', path = ''] = address.split(' ')
  const [, , tag = ''] = path.split('/')
  return { method: method.toLowerCase() as Method, path, tag }
}
