/** How to come to an OAuth client of Google, step by step, and what can be checked of it. One serves all its services. */
import { z } from 'zod'
import { isLoopback } from '../../base/loopback.ts'
import type { Config } from '../../config/settings.ts'
import {
  type ClientSetup,
  checkByToken,
  checkRedirect,
  ENTER_STEP,
  type SetupPlace,
  type SetupStep,
  type StepCheck,
  unsafeRedirect,
} from '../client-setup.ts'
import type { OAuthClient } from '../oauth.ts'

export type GoogleSetupInput = {
  /** The section of the configuration that is its own. */
  section: (typeof SECTIONS)[number]
  /** `gmail`, and as Google calls it: `Gmail API`. */
  api: string
  apiTitle: string
  /** For which scope is asked first. */
  scope: string
  urls: (config: Config) => { auth_url: string; token_url: string }
}

const PROVIDER = 'google'
const CONSOLE = 'https://console.cloud.google.com'
const CLIENT_STEP = 'client'

/** All that can name a client of Google; the first that does serves all. */
const SECTIONS = ['gmail', 'google_drive'] as const

const ID = /^\d+-[\w-]+\.apps\.googleusercontent\.com$/
const SECRET_CHARS_MAX = 200

export function googleClientSetup(input: GoogleSetupInput): ClientSetup {
  const { section, urls } = input
  return {
    provider: PROVIDER,
    intro:
      'Google lets a program in only as a client of a project of your own. It costs nothing, takes some five minutes, and is done once, for Gmail and Google Drive together.',
    fields: {
      id: { label: 'Client ID', example: '….apps.googleusercontent.com' },
      secret: { label: 'Client secret', example: 'GOCSPX-…' },
    },
    keys: { section, hasSecret: true },
    steps: (place) => googleSteps(input, place),
    configured: (config) => {
      for (const name of new Set([section, ...SECTIONS])) {
        const { client_id: clientId, client_secret: clientSecret } = config[name] ?? {}
        if (clientId !== undefined) return { key: `${name}.client_id`, client: { clientId, clientSecret } }
      }
      return undefined
    },
    formProblems,
    parseFile,
    async check(calls, asked) {
      const { auth_url: authUrl, token_url: tokenUrl } = urls(calls.config)
      const { fetch, clock, signal } = calls
      const [redirectUri] = asked.redirects
      const checks = [await checkByToken({ fetch, clock, signal, tokenUrl }, asked)]
      const unsafe = unsafeRedirect(CLIENT_STEP, asked.redirects)
      if (unsafe) checks.push(unsafe)
      else if (redirectUri !== undefined) {
        const { clientId } = asked.client
        const { pkce } = asked
        const scopes = [input.scope]
        checks.push(
          await checkRedirect(calls, { step: CLIENT_STEP, authUrl, redirectUri, scopes, clientId, pkce }),
        )
      }
      return [...checks, enabledLater(input)]
    },
  }
}

const fileFields = z.object({ client_id: z.string(), client_secret: z.string().optional() })
/** By the type of the client. */
const fileSchema = z.object({ installed: fileFields.optional(), web: fileFields.optional() })

function parseFile(text: string): OAuthClient | undefined {
  let parsed: z.output<typeof fileSchema>
  try {
    parsed = fileSchema.parse(JSON.parse(text))
  } catch {
    // Not such a file; without its cause, which may quote the secret.
    return undefined
  }
  const { client_id: clientId, client_secret: clientSecret } = parsed.installed ?? parsed.web ?? {}
  return clientId === undefined ? undefined : { clientId, clientSecret }
}

/** Google tells it only to who has signed in. */
function enabledLater({ apiTitle }: GoogleSetupInput): StepCheck {
  return {
    step: 'api',
    state: 'unknown',
    text: `Whether the ${apiTitle} is enabled is checked when you sign in.`,
  }
}

function formProblems({ clientId, clientSecret = '' }: OAuthClient): StepCheck[] {
  const wrong = (text: string, hint: string): StepCheck => ({ step: ENTER_STEP, state: 'failed', text, hint })
  if (/^GOCSPX-/.test(clientId)) {
    return [wrong('This is a secret, not a client ID.', 'The ID ends with .apps.googleusercontent.com.')]
  }
  if (/\.iam\.gserviceaccount\.com$|^\d+$/.test(clientId)) {
    return [
      wrong(
        'This is the name of a service account or of a project, not a client ID.',
        'The ID stands under "Clients" of the Google Auth Platform.',
      ),
    ]
  }
  if (!ID.test(clientId)) {
    return [
      wrong(
        'This is not a client ID of Google.',
        'It begins with digits and ends with .apps.googleusercontent.com.',
      ),
    ]
  }
  if (clientSecret === '' || clientSecret.length > SECRET_CHARS_MAX || /[^\x21-\x7e]/.test(clientSecret)) {
    return [
      wrong(
        'This is not a client secret of Google.',
        'It stands on the page of the client, and begins with GOCSPX-. A secret that is not shown any more is replaced by "Add secret".',
      ),
    ]
  }
  return []
}

function googleSteps({ api, apiTitle }: GoogleSetupInput, { redirects }: SetupPlace): SetupStep[] {
  return [
    {
      id: 'project',
      title: 'Make a project, or choose one that you have',
      texts: ['Its name is for you alone.'],
      links: [{ text: 'New project', url: `${CONSOLE}/projectcreate` }],
      copies: [],
    },
    {
      id: 'api',
      title: `Enable the ${apiTitle} in it`,
      texts: [],
      links: [{ text: apiTitle, url: `${CONSOLE}/apis/library/${api}.googleapis.com` }],
      copies: [],
    },
    {
      id: 'consent',
      title: 'Name the app, and publish it',
      texts: [
        'Under "Branding" give it a name and your address.',
        'Under "Audience" choose "External", then "Publish app". Left in "Testing", you must connect again every 7 days.',
        'In a Workspace of your own, "Internal" does: then nobody is warned.',
      ],
      links: [
        { text: 'Branding', url: `${CONSOLE}/auth/branding` },
        { text: 'Audience', url: `${CONSOLE}/auth/audience` },
      ],
      copies: [],
    },
    clientStep(redirects),
    {
      id: ENTER_STEP,
      title: 'Enter its ID and secret here',
      texts: ['Google is asked whether they are right; then they are kept sealed.'],
      links: [],
      copies: [],
    },
  ]
}

/** A desktop client may be sent back to this machine; to any other only one of the web, with its exact address. */
function clientStep(redirects: readonly string[]): SetupStep {
  const links = [{ text: 'Create a client', url: `${CONSOLE}/auth/clients/create` }]
  const isHere = redirects.every((one) => isLoopback(new URL(one).hostname))
  if (isHere) {
    return {
      id: CLIENT_STEP,
      title: 'Create a client of the type "Desktop app"',
      texts: ['It needs no redirect address: Google sends the browser back to this machine.'],
      links,
      copies: [],
    }
  }
  return {
    id: CLIENT_STEP,
    title: 'Create a client of the type "Web application"',
    texts: ['Under "Authorized redirect URIs" add each of these, exactly so:'],
    links,
    copies: redirects.map((text) => ({ label: 'Redirect address', text })),
  }
}
