/** What hono's requests carry here. */
import type { HttpBindings } from '@hono/node-server'
import type { Context, Hono } from 'hono'

/** Without bindings where a request does not come through a socket, as in tests. */
export type AppEnv = { Bindings: Partial<HttpBindings> | undefined }
export type App = Hono<AppEnv>

export function clientAddress(c: Context<AppEnv>): string {
  return c.env?.incoming?.socket.remoteAddress ?? 'here'
}
