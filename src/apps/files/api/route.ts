/** How the routes and tools of this app are written. */
import type { z } from 'zod'
import { toolsOf } from '../../../app/module.ts'
import { type Method, routesOf } from '../../../app/route.ts'
import type { Services } from '../../../app/services.ts'
import type { FilesRuntime } from '../runtime.ts'

export type FilesServices = Services & FilesRuntime

const { route, download } = routesOf<FilesServices>()
export const defineTool = toolsOf<FilesServices>()

type Shape = z.ZodObject | undefined
type Old = { method: Method; path: string; access: 'read' | 'write' }
type RouteAbout<
  A extends z.ZodType,
  P extends Shape,
  Q extends Shape,
  B extends z.ZodType | undefined,
> = Parameters<typeof route<A, P, Q, B>>[1]
type DownloadAbout<P extends Shape, Q extends Shape> = Parameters<typeof download<P, Q>>[1]

export const defineRoute = <
  A extends z.ZodType,
  P extends Shape = undefined,
  Q extends Shape = undefined,
  B extends z.ZodType | undefined = undefined,
>(
  { method, path, access: _, ...about }: Old & Omit<RouteAbout<A, P, Q, B>, 'handle'>,
  handle: RouteAbout<A, P, Q, B>['handle'],
) =>
  route<A, P, Q, B>(
    `${method.toUpperCase()} ${path}` as 'GET /',
    { ...about, handle } as RouteAbout<A, P, Q, B>,
  )

export const defineDownload = <P extends Shape = undefined, Q extends Shape = undefined>(
  { method, path, access: _, ...about }: Old & Omit<DownloadAbout<P, Q>, 'handle'>,
  handle: DownloadAbout<P, Q>['handle'],
) => download<P, Q>(`${method.toUpperCase()} ${path}` as 'GET /', { ...about, handle } as DownloadAbout<P, Q>)
