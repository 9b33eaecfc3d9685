/** Gmail accounts: the OAuth client, whose account a token is of, what a secret allows, and how long it lasts. */
import { z } from 'zod'
import type { Clock } from '../../base/clock.ts'
import { TidemarkError } from '../../base/errors.ts'
import { formatCount } from '../../base/format.ts'
import type { Config } from '../../config/settings.ts'
import type { AccountService } from '../account-service.ts'
import { ADDRESS, openSecret, type StoredAccount } from '../account-store.ts'
import { googleAccounts } from '../google/account.ts'
import { type Fetch, readText } from '../oauth.ts'
import {
  accessOf,
  allows,
  GMAIL_SCOPES,
  type GmailAccess,
  type GmailAction,
  type GmailSecret,
  parseGmailSecret,
} from './auth.ts'
import { classify, timedOut, unreachable } from './errors.ts'

export const GMAIL = 'gmail'

export const gmailService: AccountService<GmailSecret> = {
  ...googleAccounts({
    title: 'Gmail',
    settings: ({ gmail }) => gmail,
    parse: parseGmailSecret,
    scopeOf: (level) => GMAIL_SCOPES[level as GmailAccess],
    isEnough: (scopes, level) => allows(scopes, LEVEL_ACTION[level as GmailAccess]),
    deviceText: 'Google gives no device codes for mail.',
    setup: { section: 'gmail', api: 'gmail', apiTitle: 'Gmail API', level: 'readonly' },
  }),
  name: GMAIL,
  title: 'Gmail',
  levels: [
    {
      level: 'readonly',
      text: 'read only',
      may: 'May read only',
      flag: 'readOnly',
      choice: { title: 'Read only', hint: 'Enough to copy, search and read.' },
    },
    {
      level: 'modify',
      text: 'read, label and trash',
      may: 'May read, move and trash',
      flag: 'modify',
      choice: {
        title: 'Read and move',
        hint: 'Also to take old mail out of the inbox, or to the trash.',
      },
    },
    {
      level: 'full',
      text: 'everything, also deleting permanently',
      flag: 'full',
      may: 'May do everything, also delete for good',
      choice: { title: 'Everything', hint: 'Also to delete for good, which frees space.' },
    },
  ],
  defaultLevel: 'readonly',
  keepsLevel: true,
  needs: 'the permission to read mail',
  unknownDetails: { messages: null },

  called: (name) => ({ inText: name, asTitle: name }),
  levelOf: ({ scopes }) => accessOf(scopes),
  async profile(calls, tokens) {
    const accessToken = await tokens.access()
    const { address, messages } = await readProfile(calls, {
      apiUrl: calls.config.gmail.api_url,
      accessToken,
    })
    return {
      name: address,
      facts: messages === undefined ? [] : [`${formatCount(messages)} messages`],
      details: { messages: messages ?? null },
      brief: {},
    }
  },

  quota: ({ gmail }) => quotaOf(gmail),
}

const PROFILE_TIMEOUT_MS = 30_000

type GmailProfile = { address: string; messages: number | undefined }

const profileSchema = z.object({
  emailAddress: z.string().regex(ADDRESS),
  messagesTotal: z.number().optional().catch(undefined),
})

/** Whose account it is: the first call with a new token. */
export async function readProfile(
  { fetch, clock }: { fetch: Fetch; clock: Clock },
  { apiUrl, accessToken }: { apiUrl: string; accessToken: string },
): Promise<GmailProfile> {
  const late = new AbortController()
  const cancel = clock.timer(PROFILE_TIMEOUT_MS, () => late.abort(new DOMException('late', 'TimeoutError')))
  let response: Response
  let body: string
  try {
    response = await fetch(`${apiUrl.replace(/\/+$/, '')}/gmail/v1/users/me/profile`, {
      headers: { authorization: `Bearer ${accessToken}`, accept: 'application/json' },
      redirect: 'error',
      signal: late.signal,
    })
    body = await readText(response)
  } catch (thrown) {
    throw (thrown as Error).name === 'TimeoutError' ? timedOut(PROFILE_TIMEOUT_MS) : unreachable(thrown)
  } finally {
    cancel()
  }
  if (response.status !== 200) {
    throw classify({ status: response.status, body, headers: response.headers, nowMs: clock.now() })
  }
  const parsed = profileSchema.safeParse(jsonOf(body))
  if (!parsed.success) {
    throw new TidemarkError('Gmail did not say whose account this is.', {
      kind: 'transient',
      code: 'not-gmail',
    })
  }
  return { address: parsed.data.emailAddress.toLowerCase(), messages: parsed.data.messagesTotal }
}

export async function readSecret(input: StoredAccount): Promise<GmailSecret> {
  return parseGmailSecret(await openSecret(input))
}

const LEVEL_ACTION: Record<GmailAccess, GmailAction> = { readonly: 'read', modify: 'trash', full: 'delete' }

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const UNITS_NEW = 6_000
const UNITS_OLD = 15_000
const PRICE_NEW = 20

/** Google does not tell: what is configured is compared with what is documented. */
function quotaOf(gmail: Config['gmail']): ReturnType<NonNullable<AccountService['quota']>> {
  const { units_per_minute: units, price_of_get: price } = gmail
  const text = `gmail.units_per_minute is ${formatCount(units)}`
  const tiers = `Projects have ${formatCount(UNITS_NEW)} units a minute for each user; those that used the API from November 2025 to April 2026 have ${formatCount(UNITS_OLD)}.`
  const quotas = 'Yours is under "Quotas" of the Gmail API in the Google Cloud console.'
  if (units > UNITS_OLD) {
    const hint = `${tiers} More leads to throttling, unless Google has raised your quota. ${quotas}`
    return { level: 'warning', text: `${text}, more than is documented`, hint }
  }
  if (units > UNITS_NEW)
    return { level: 'ok', text: `${text}, right for older projects only`, hint: `${tiers} ${quotas}` }
  if (units < UNITS_NEW)
    return { level: 'ok', text: `${text}, less than any project has: it is slower than need be` }
  const perSecond = units / 60 / Math.max(price, 1)
  const older = price === PRICE_NEW ? `; older projects can set ${formatCount(UNITS_OLD)}` : ''
  return { level: 'ok', text: `${text}, some ${formatCount(perSecond)} messages a second${older}` }
}
