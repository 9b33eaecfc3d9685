/**
 * Addresses for what a browser loads by itself: frames, pictures and downloads, which cannot carry the session. A
 * ticket stands for GETs of one address by whoever asked for it, for a minute; afterwards it is of no use, wherever it
 * was written down.
 */
import { randomBytes } from 'node:crypto'
import type { Context } from 'hono'
import { z } from 'zod'
import { notFound } from '../app/problem.ts'
import { placed, type Route } from '../app/route.ts'
import type { Clock } from '../base/clock.ts'
import type { App, AppEnv } from './app-env.ts'
import { readInput } from './request-input.ts'

const TICKET_MS = 60_000
const TICKETS_MAX = 1_000
const TICKET_BYTES = 24
const PATH_LENGTH_MAX = 4_000

const wish = z.object({
  path: z
    .string()
    .max(PATH_LENGTH_MAX)
    .regex(/^\/api\/[\x21-\x7e]+$/, 'must be a path of this API, beginning with /api/')
    .describe('What is to be loaded, with its parameters: /api/mail/messages/ACCOUNT/ID/raw'),
})

export const ticketSpecs = {
  ticket: {
    ...placed('POST /api/tickets'),
    tag: 'sign-in',
    access: 'member',
    body: wish,
    summary: 'An address under which a browser loads something for a minute, without the session',
    description: 'For frames, pictures and downloads, to which a page cannot add a header.',
    answer: z.object({ href: z.string().describe('A path of this server') }),
  },
} as const satisfies Record<string, Route['spec']>

type Ticket = { path: string; authorization: string; untilMs: number }

export function addTickets(app: App, { clock }: { clock: Clock }): void {
  /** Oldest first. */
  const tickets = new Map<string, Ticket>()
  const dropOld = (): void => {
    for (const [id, { untilMs }] of tickets) {
      if (untilMs > clock.monotonicMs() && tickets.size < TICKETS_MAX) return
      tickets.delete(id)
    }
  }
  app.post(ticketSpecs.ticket.path, async (c) => {
    const { body } = await readInput(c.req.raw, { body: wish }, {})
    dropOld()
    const id = randomBytes(TICKET_BYTES).toString('base64url')
    const { path } = body as z.output<typeof wish>
    const untilMs = clock.monotonicMs() + TICKET_MS
    tickets.set(id, { path, authorization: c.req.header('authorization') ?? '', untilMs })
    c.header('cache-control', 'no-store')
    return c.json({ href: `/ticket/${id}` })
  })
  app.get('/ticket/:id', (c) => {
    const ticket = tickets.get(c.req.param('id'))
    if (!ticket || ticket.untilMs <= clock.monotonicMs()) {
      throw notFound('This address was good for a minute, and that is over.', {
        hint: 'Go back to the page, and open it there again.',
      })
    }
    return load(app, c, ticket)
  })
}

/** As if whoever asked for the ticket asked for the path: if their session is over, so is the ticket. */
async function load(app: App, c: Context<AppEnv>, { path, authorization }: Ticket): Promise<Response> {
  const headers = new Headers(c.req.raw.headers)
  headers.set('authorization', authorization)
  const url = new URL(path, c.req.url)
  return app.fetch(new Request(url, { headers, signal: c.req.raw.signal }), c.env)
}
