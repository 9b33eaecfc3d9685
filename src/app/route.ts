/**
 * How the API is written: each route says what it takes and what it answers, as zod schemas. From these come the
 * checks of what clients send, the OpenAPI document, and the tests that hold every answer against it.
 */
import type { z } from 'zod'
import type { Services } from './services.ts'

export type Method = 'get' | 'post' | 'put' | 'delete'

/** `write` needs more than being allowed to look: a token or a same-origin request with the right header. */
export type Access = 'read' | 'write'

type Shape = z.ZodObject | undefined
type Parsed<S extends Shape> = S extends z.ZodObject ? z.output<S> : Record<string, never>

export type RouteSpec<
  P extends Shape,
  Q extends Shape,
  B extends z.ZodType | undefined,
  A extends z.ZodType,
> = {
  method: Method
  /** With parameters in braces: `/api/jobs/{id}`. */
  path: string
  summary: string
  /** What the summary leaves open. */
  description?: string
  /** Groups routes in the document: streams, jobs, mail … */
  tag: string
  access: Access
  params?: P
  query?: Q
  body?: B
  answer: A
  /** 200 if left out; 202 for what goes on in the background. */
  status?: 200 | 201 | 202
  /** Answers with an ETag and 304; for what clients ask again and again. */
  etag?: boolean
  /** Statuses of its refusals besides those that every route of its form has: see openapi.ts. */
  errors?: readonly number[]
}

export type RouteInput<P extends Shape, Q extends Shape, B extends z.ZodType | undefined> = {
  params: Parsed<P>
  query: Parsed<Q>
  body: B extends z.ZodType ? z.output<B> : undefined
  /** Aborted when the client goes away. */
  signal: AbortSignal
  /** Under which the client reaches this server: `http://127.0.0.1:8080`. */
  origin: string
}

/** A route with its types forgotten, as the list of all routes holds it. */
export type Route = {
  kind: 'json'
  spec: RouteSpec<z.ZodObject | undefined, z.ZodObject | undefined, z.ZodType | undefined, z.ZodType>
  handle: (input: never, services: never) => Promise<unknown>
}

export function defineRoute<
  A extends z.ZodType,
  P extends Shape = undefined,
  Q extends Shape = undefined,
  B extends z.ZodType | undefined = undefined,
  S extends Services = Services,
>(
  spec: RouteSpec<P, Q, B, A>,
  handle: (input: RouteInput<P, Q, B>, services: S) => Promise<z.input<A>>,
): Route {
  return { kind: 'json', spec: spec as Route['spec'], handle: handle as Route['handle'] }
}

type DownloadSpec = {
  contentType: string
  /** Others that it may be instead: a picture is of one of several. */
  moreTypes?: readonly string[]
  /** Statuses that come as a page of that type and not as a problem: for what people look at. */
  errorPages?: readonly number[]
}

/** Bytes instead of JSON: an attachment, a raw message, a page of sanitised HTML. */
export type Download = {
  kind: 'download'
  spec: Omit<Route['spec'], 'answer' | 'body' | 'status'> & DownloadSpec
  handle: (input: never, services: never) => Promise<DownloadAnswer>
}

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

export function defineDownload<
  P extends Shape = undefined,
  Q extends Shape = undefined,
  S extends Services = Services,
>(
  spec: Omit<RouteSpec<P, Q, undefined, z.ZodType>, 'answer' | 'body' | 'status'> & DownloadSpec,
  handle: (input: RouteInput<P, Q, undefined>, services: S) => Promise<DownloadAnswer>,
): Download {
  return { kind: 'download', spec: spec as Download['spec'], handle: handle as Download['handle'] }
}

export type AnyRoute = Route | Download

/** The same for an app, whose handlers are also given the app itself, under its name. */
export function routesOf<S extends Services>() {
  return {
    defineRoute: <
      A extends z.ZodType,
      P extends Shape = undefined,
      Q extends Shape = undefined,
      B extends z.ZodType | undefined = undefined,
    >(
      spec: RouteSpec<P, Q, B, A>,
      handle: (input: RouteInput<P, Q, B>, services: S) => Promise<z.input<A>>,
    ) => defineRoute<A, P, Q, B, S>(spec, handle),
    defineDownload: <P extends Shape = undefined, Q extends Shape = undefined>(
      spec: Omit<RouteSpec<P, Q, undefined, z.ZodType>, 'answer' | 'body' | 'status'> & DownloadSpec,
      handle: (input: RouteInput<P, Q, undefined>, services: S) => Promise<DownloadAnswer>,
    ) => defineDownload<P, Q, S>(spec, handle),
  }
}
