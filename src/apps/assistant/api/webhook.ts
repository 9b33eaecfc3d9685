/**
 * Where Pub/Sub tells that a mailbox has changed. It knows no token of this server: each push is signed by Google for
 * this address in the name of one service account, and is checked for that before anything of it is read.
 *
 *   not signed so ─▶ 401 and a line in a minute     keys out of reach ─▶ 503: Pub/Sub tries again
 *   not understood ─▶ 400                           mailbox unknown ─▶ 200 and a line: trying again would not help
 *   known ─▶ the sync is in the ledger, then 200: what was answered with 200 is never told again
 */
import { z } from 'zod'
import { oneLine } from '../../../app/plain-text.ts'
import { notFound, ProblemError } from '../../../app/problem.ts'
import { routesOf } from '../../../app/route.ts'
import type { Services } from '../../../app/services.ts'
import type { PushVerdict } from '../../../cloud/google/push-token.ts'

/** What the webhook needs of the assistant. */
export type PushPart = {
  /** Undefined where no service account is named in the settings. */
  tokens(): { verify(token: string | undefined): Promise<PushVerdict> } | undefined
  isKnown(account: string): Promise<boolean>
  /**
   * Notes the time and has a sync look at the mailbox: resolves when both are committed. A sync that runs already may
   * have listed before this change, so its key being taken is not enough: `historyId` is noted for it.
   */
  arrived(push: { account: string; historyId: string; atMs: number }): Promise<void>
}

export type PushServices = Services & { assist: { push: PushPart } }

const DATA_CHARS_MAX = 10_000

const envelope = z.looseObject({
  message: z.looseObject({
    data: z
      .string()
      .min(1)
      .max(DATA_CHARS_MAX)
      .regex(/^[\w+/-]+={0,2}$/),
  }),
})

/** History ids are 64 bits wide, more than a number holds, and come as numbers or as texts. */
const content = z.looseObject({
  emailAddress: z.string().min(3).max(320),
  historyId: z.string().regex(/^\d{1,20}$/),
})

/** Anybody can send what is not signed: so often it is told, with how many there were. */
const REFUSALS_TOLD_MS = 60_000
const refusals = new WeakMap<object, { toldMs: number; untold: number }>()

/** How many were refused since this was last told, with this one; undefined where it is not told yet. */
function refusedNow(server: object, nowMs: number): number | undefined {
  const before = refusals.get(server)
  const count = (before?.untold ?? 0) + 1
  const isQuiet = before !== undefined && nowMs - before.toldMs < REFUSALS_TOLD_MS
  refusals.set(server, isQuiet ? { ...before, untold: count } : { toldMs: nowMs, untold: 0 })
  return isQuiet ? undefined : count
}

const { route } = routesOf<PushServices>()

export const pushRoute = route('POST /api/assist/push', {
  summary: 'Pub/Sub tells that a mailbox has changed',
  description:
    'Signed by Google with a token for the configured audience and service account. Answers after the look at the ' +
    'mailbox is on record.',
  access: 'signed',
  errors: [400, 401, 404],
  body: z.unknown(),
  answer: z.object({ known: z.boolean() }),
  handle: async ({ bearer, body }, services) => {
    const { assist, engine, clock } = services
    const tokens = assist.push.tokens()
    if (!tokens) {
      throw notFound('No pushes are expected here.', {
        code: 'push-off',
        hint: 'The settings of the assistant must name the service account that signs them.',
      })
    }
    const note = (code: string, text: string): void =>
      engine.events.emit({ type: 'note', app: 'assist', level: 'warn', code, text })
    const verdict = await tokens.verify(bearer)
    if (!verdict.ok) {
      const count = refusedNow(engine, clock.monotonicMs())
      const many = count === 1 ? 'a push was refused' : `${count} pushes were refused, the last one`
      if (count !== undefined) note('push-refused', `${many}: ${verdict.detail}`)
      throw new ProblemError(401, 'The push is not signed as it must be.', { code: 'push-refused' })
    }
    const push = pushOf(body)
    if (!push) {
      note('push-malformed', 'a push was signed as it must be, and could not be read')
      throw new ProblemError(400, 'The push is not one of Gmail.', { code: 'push-malformed' })
    }
    const known = await assist.push.isKnown(push.account)
    if (known) await assist.push.arrived({ ...push, atMs: clock.now() })
    else
      note(
        'push-unknown',
        `a push came for ${oneLine(push.account, 100)}, whose mail is not looked after here`,
      )
    return { known }
  },
})

function pushOf(body: unknown): { account: string; historyId: string } | undefined {
  const wrapped = envelope.safeParse(body)
  if (!wrapped.success) return undefined
  const said = content.safeParse(parsed(Buffer.from(wrapped.data.message.data, 'base64').toString('utf8')))
  if (!said.success) return undefined
  const { emailAddress, historyId } = said.data
  return { account: emailAddress.toLowerCase(), historyId }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text, (key: string, value: unknown, context?: { source?: string }) =>
      key === 'historyId' && typeof value === 'number' ? context?.source : value,
    )
  } catch {
    // What is no JSON is no push of Gmail.
    return undefined
  }
}
