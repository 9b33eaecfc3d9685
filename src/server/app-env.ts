/** What hono's requests carry here. */
import type { HttpBindings } from '@hono/node-server'
import type { Context, Hono } from 'hono'
import type { Identity } from './security.ts'

/** Without bindings where a request does not come through a socket, as in tests. */
export type AppEnv = {
  Bindings: (Partial<HttpBindings> & { admit?: Admit }) | undefined
  /** Whoever has shown who they are, where that is needed: see security.ts. */
  Variables: { identity?: Identity }
}
/** Whoever sent this has shown who they are: their connection is kept before those of strangers. */
export type Admit = () => void
export type App = Hono<AppEnv>

export function clientAddress(c: Context<AppEnv>): string {
  return c.env?.incoming?.socket.remoteAddress ?? 'here'
}
