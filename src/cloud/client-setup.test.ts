/** What a check says of the clients with which people sign in, against the simulated providers. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { catalog } from '../apps/catalog.ts'
import { systemClock } from '../base/clock.ts'
import { type Sim, startSim } from '../sim/start.ts'
import type { AccountService } from './account-service.ts'
import { checkClient, isRefused, type ServiceCalls, stepLines } from './client-setup.ts'
import { driveService } from './drive/account.ts'
import { gmailService } from './gmail/account.ts'
import type { OAuthClient } from './oauth.ts'
import { oneDriveService } from './onedrive/account.ts'

let sim: Sim
before(async () => {
  sim = await startSim({ gmail: {}, onedrive: { drives: [{ account: 'ann@example.com' }] } })
})
after(() => sim.close())

const HERE = 'http://127.0.0.1:4180/oauth/gmail/callback'
const PKCE = { verifier: 'v'.repeat(43), challenge: 'c'.repeat(43), state: 'state' }

function calls(part: { token?: string } = {}): ServiceCalls {
  const { authUrl: auth_url, tokenUrl } = sim.gmail
  const { onedrive } = sim
  const google = { auth_url, token_url: part.token ?? tokenUrl }
  const config = catalog.parse({
    gmail: google,
    google_drive: google,
    onedrive: { auth_url: onedrive.authUrl, token_url: onedrive.tokenUrl, device_url: onedrive.deviceUrl },
  })
  return { config, fetch: globalThis.fetch, clock: systemClock }
}

const google = (part: Partial<OAuthClient> = {}): OAuthClient => ({
  clientId: sim.gmail.clientId,
  clientSecret: sim.gmail.clientSecret,
  ...part,
})

async function told(
  { signIn: { setup } }: AccountService,
  client: OAuthClient,
  { redirects = [HERE], ...part }: { redirects?: string[]; token?: string } = {},
): Promise<Record<string, string>> {
  const checks = await checkClient(setup, calls(part), { client, redirects, pkce: PKCE })
  return Object.fromEntries(checks.map(({ step, state }) => [step, state]))
}

describe('a client of Google', () => {
  test('that is right is accepted, with its redirect; what only a sign-in shows is left open', async () => {
    assert.deepEqual(await told(gmailService as never, google()), {
      enter: 'ok',
      client: 'ok',
      api: 'unknown',
    })
    assert.deepEqual(await told(driveService as never, google(), { redirects: [] }), {
      enter: 'ok',
      api: 'unknown',
    })
  })

  test('with a wrong secret, or that Google does not know, is refused', async () => {
    const wrong = await told(gmailService as never, google({ clientSecret: 'GOCSPX-of-another' }))
    assert.equal(wrong.enter, 'failed')
    const unknown = google({ clientId: '123-nobody.apps.googleusercontent.com' })
    assert.deepEqual(await told(gmailService as never, unknown), {
      enter: 'failed',
      client: 'failed',
      api: 'unknown',
    })
  })

  test('of whom nobody could be asked is neither accepted nor refused', async () => {
    const { enter } = await told(gmailService as never, google(), { token: 'http://127.0.0.1:1/token' })
    assert.equal(enter, 'unknown')
  })

  test('whose form is wrong is refused without asking anybody', async () => {
    const forms: Partial<OAuthClient>[] = [
      { clientId: 'GOCSPX-secret-in-the-wrong-field' },
      { clientId: 'archiver@project.iam.gserviceaccount.com' },
      { clientId: 'my-project' },
      { clientSecret: undefined },
      { clientSecret: 'two words' },
      { clientSecret: 'x'.repeat(500) },
    ]
    const asked: unknown[] = []
    const fetch = async (url: string): Promise<Response> => {
      asked.push(url)
      return new Response()
    }
    for (const form of forms) {
      const { setup } = gmailService.signIn
      const input = { client: google(form), redirects: [HERE], pkce: PKCE }
      const checks = await checkClient(setup, { ...calls(), fetch }, input)
      assert.ok(isRefused(checks), JSON.stringify(form))
    }
    assert.deepEqual(asked, [])
  })

  test('for a server elsewhere must be of the web, with its https address; one without https is told at once', async () => {
    const elsewhere = [
      'https://tide.example.com/oauth/gmail/callback',
      'https://tide.example.com/oauth/drive/callback',
    ]
    const [here, there] = [[HERE], elsewhere].map((redirects) =>
      stepLines(gmailService.signIn.setup.steps({ redirects })).join('\n'),
    )
    assert.match(here!, /Desktop app/)
    assert.match(there!, /Web application/)
    for (const one of elsewhere) assert.ok(there!.includes(one))
    // The simulated client is a desktop one.
    assert.equal((await told(gmailService as never, google(), { redirects: elsewhere })).client, 'failed')
    const open = ['http://192.168.1.5:4180/oauth/gmail/callback']
    assert.deepEqual(await told(gmailService as never, google(), { redirects: open }), {
      enter: 'ok',
      client: 'failed',
      api: 'unknown',
    })
  })

  test('that is configured for one of its services serves the others, and its own section first', () => {
    const config = catalog.parse({ gmail: { client_id: 'of-gmail', client_secret: 's' } })
    const { setup } = driveService.signIn
    assert.deepEqual(setup.configured(config), {
      key: 'gmail.client_id',
      client: { clientId: 'of-gmail', clientSecret: 's' },
    })
    const both = catalog.parse({ gmail: { client_id: 'of-gmail' }, google_drive: { client_id: 'of-drive' } })
    assert.equal(setup.configured(both)?.key, 'google_drive.client_id')
    assert.equal(setup.configured(catalog.parse({})), undefined)
  })
})

describe('an app at Microsoft', () => {
  const redirects = ['http://localhost:4180/oauth/onedrive/callback']
  test('that is registered is accepted, with its redirect', async () => {
    const client = { clientId: sim.onedrive.clientId }
    assert.deepEqual(await told(oneDriveService as never, client, { redirects }), {
      enter: 'ok',
      redirect: 'ok',
    })
  })

  test('that Microsoft does not know, or whose id has another form, is refused', async () => {
    const unknown = { clientId: '99999999-2222-4333-8444-555555555555' }
    assert.equal((await told(oneDriveService as never, unknown, { redirects })).enter, 'failed')
    assert.deepEqual(await told(oneDriveService as never, { clientId: 'my-app' }), { enter: 'failed' })
  })

  test('has to name this machine without its port', () => {
    const lines = stepLines(oneDriveService.signIn.setup.steps({ redirects }))
    assert.ok(
      lines.includes('   Redirect address: http://localhost/oauth/onedrive/callback'),
      lines.join('\n'),
    )
  })
})
