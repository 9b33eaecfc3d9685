/** Gmail, as the commands about accounts see it. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { folderName } from '../apps/mail-archive/account.ts'
import { systemClock } from '../clock.ts'
import { openAccountTokens } from '../cloud/gmail/account-tokens.ts'
import { accessOf } from '../cloud/gmail/auth.ts'
import { revokeToken } from '../cloud/oauth.ts'
import { TESTING_HINT } from '../cloud/oauth-errors.ts'
import { asTidemarkError } from '../errors.ts'
import { formatCount } from '../format.ts'
import type { Account } from '../ledger/accounts.ts'
import { distance } from '../moment.ts'
import { ACCESS_TEXT, GMAIL, readProfile, readSecret } from '../server/gmail-account.ts'
import type { AccountService } from './account-service.ts'
import { tokenConcerns } from './account-token-age.ts'

export const gmailService: AccountService = {
  service: GMAIL,
  title: 'Gmail',
  company: 'Google',
  needs: 'the permission to read mail',
  endHint: TESTING_HINT,
  unknownDetails: { messages: null },

  // A named account keeps what it was allowed.
  flagsOf: () => '',

  clientOf: ({ gmail }) => ({ key: 'gmail.client_id', id: gmail.client_id }),

  async look(input, nowMs) {
    const secret = await readSecret(input)
    const level = accessOf(secret.scopes)
    const isOAuth = secret.kind === 'oauth'
    return {
      access: level && { level, text: ACCESS_TEXT[level] },
      clientId: isOAuth ? secret.clientId : undefined,
      accessToken: (isOAuth && secret.accessToken) || '',
      obtainedAtMs: isOAuth ? secret.obtainedAtMs : undefined,
      signIn: isOAuth
        ? `signed in ${distance(secret.obtainedAtMs, nowMs)}`
        : `by the service account ${secret.clientEmail}`,
      concerns: tokenConcerns(secret, nowMs),
    }
  },

  tokens: (input, { gmail }) =>
    openAccountTokens({ ...input, fetch, clock: systemClock, tokenUrl: gmail.token_url }),

  async profile({ gmail }, tokens) {
    const { address, messages } = await readProfile(gmail.api_url, await tokens.access())
    return {
      name: address,
      facts: messages === undefined ? [] : [`${formatCount(messages)} messages`],
      details: { messages: messages ?? null },
    }
  },

  limitOf: ({ level }) => (level === 'readonly' ? '`mail archive` can free no space with that' : ''),

  keeps: async (account) => choicesText(account),

  async remains({ name }, { home }) {
    const archive = join(home, 'mail', folderName(name))
    return {
      question: 'Its archive stays.',
      text: existsSync(archive)
        ? `What was archived of it stays in ${archive}.`
        : 'Nothing was archived of it.',
      details: { archive },
    }
  },

  withdrawal: ({ name }) => `https://myaccount.google.com/permissions, signed in as ${name}`,

  async prepareRevocation(input, { gmail }) {
    const secret = await readSecret(input)
    if (secret.kind !== 'oauth') return async () => ({ outcome: 'none' })
    return async () => {
      try {
        const calls = { fetch, clock: systemClock, revokeUrl: gmail.revoke_url }
        await revokeToken(calls, secret.refreshToken)
        return { outcome: 'done' }
      } catch (thrown) {
        return { outcome: 'failed', why: asTidemarkError(thrown).message }
      }
    }
  },
}

function choicesText({ settings }: Account): string {
  const { spam, trash, onlyLabels, skipLabels } = settings as Record<string, unknown>
  const names = (value: unknown): string => (Array.isArray(value) ? value.join(', ') : '')
  const only = names(onlyLabels)
  const skip = names(skipLabels)
  return [
    only ? `only ${only}` : 'all',
    spam === true ? 'with spam' : 'without spam',
    ...(trash === false ? ['without trash'] : []),
    ...(skip ? [`without ${skip}`] : []),
  ].join(', ')
}
