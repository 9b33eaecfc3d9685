/** What hono's requests carry here. */
import type { HttpBindings } from '@hono/node-server'
import type { Context, Hono } from 'hono'
import type { RequestUser } from '../app/user.ts'

/** Without bindings where a request does not come through a socket, as in tests. */
export type AppEnv = {
  Bindings: (Partial<HttpBindings> & { admit?: Admit }) | undefined
  /** Whoever has shown who they are, where that is needed: see security.ts. */
  Variables: { identity?: Identity }
}
export type Identity = {
  by: 'token' | 'session'
  user: RequestUser
  /** The user's own token by which they came, now or when their session began. */
  tokenId?: number | undefined
}

/** Whoever sent this has shown who they are: their connection is kept before those of strangers. */
export type Admit = () => void
export type App = Hono<AppEnv>

export function clientAddress(c: Context<AppEnv>): string {
  return c.env?.incoming?.socket.remoteAddress ?? 'here'
}
