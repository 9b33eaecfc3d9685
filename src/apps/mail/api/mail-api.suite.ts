/** A whole server with the mail module: a simulated Gmail, a real engine and ledger, and a real archive. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { OpenRuntime } from '../../../app/runtime.ts'
import { catalog } from '../../../apps/catalog.ts'
import { systemClock } from '../../../base/clock.ts'
import { keepAccount } from '../../../cloud/account-keeping.ts'
import { gmailService } from '../../../cloud/gmail/account.ts'
import { GMAIL_SCOPES, type GmailAccess } from '../../../cloud/gmail/auth.ts'
import { openRuntime } from '../../../runtime/runtime.ts'
import { type Sim, startSim } from '../../../sim/start.ts'
import { type Answer, type AppApi, appApi } from '../../app-api.suite.ts'
import { apps } from '../../registry.ts'
import { streamOf } from '../account.ts'
import { type MailRuntime, mailRuntime } from '../runtime.ts'
import { startAccounts } from '../work.ts'
import { mailModule } from './module.ts'

export const ANN = 'ann@example.com'
export const BOB = 'bob@example.com'

export type { Answer, Body } from '../../app-api.suite.ts'

export type MailWorld = AppApi<OpenRuntime & MailRuntime> & {
  sim: Sim
  runtime: OpenRuntime & MailRuntime
  connect(address: string, access?: GmailAccess): Promise<void>
  /** What is said of every account, by all and by this app. */
  accounts(): Promise<Answer['body'][]>
  /** Until nothing is left to do. */
  sync(): Promise<void>
  /** Puts a message into Ann's mailbox, as it is. */
  deliver(raw: string | Buffer, options?: { atMs?: number; labelIds?: string[] }): string
  close(): Promise<void>
}

export async function startMailApi(
  options: { messages?: number; started?: boolean } = {},
): Promise<MailWorld> {
  const home = mkdtempSync(join(tmpdir(), 'tidemark-mail-api-'))
  const sim = await startSim({
    gmail: {
      quota: { unitsPerMinute: null },
      accounts: [
        { address: ANN, messages: options.messages ?? 0, years: 1 },
        { address: BOB, messages: 3, years: 1 },
      ],
    },
  })
  const config = catalog.parse({
    gmail: {
      ...{
        api_url: sim.baseUrl,
        token_url: sim.gmail.tokenUrl,
        auth_url: sim.gmail.authUrl,
        revoke_url: sim.gmail.revokeUrl,
      },
      client_id: sim.gmail.clientId,
      client_secret: sim.gmail.clientSecret,
      units_per_minute: 100_000_000,
      requests_per_second_start: 5_000,
      requests_per_second_max: 5_000,
    },
  })
  const runtime = mailRuntime(await openRuntime({ config, home, env: {}, role: 'all', apps }))
  const api = await appApi(runtime, mailModule)
  if (options.started !== false) await runtime.engine.start()
  return {
    ...api,
    sim,
    runtime,
    async connect(address, access = 'full') {
      const scopes = [GMAIL_SCOPES[access]]
      const { refreshToken } = sim.gmail.issue(address, scopes)
      const secret = {
        kind: 'oauth' as const,
        clientId: sim.gmail.clientId,
        clientSecret: sim.gmail.clientSecret,
        refreshToken,
        scopes,
        obtainedAtMs: systemClock.now(),
      }
      await keepAccount(runtime, gmailService, { profile: { name: address }, secret, level: access })
      await startAccounts(runtime)
    },
    async accounts() {
      const { body } = await api.get('/api/accounts')
      return body.items.map(({ apps: told, ...all }: Answer['body']) => ({ ...all, ...told.mail }))
    },
    async sync() {
      await runtime.engine.drained()
      for (const account of runtime.mail.accounts.names()) {
        await runtime.engine.enqueue(runtime.mail.kinds.history, { account }, { stream: streamOf(account) })
      }
      await runtime.engine.drained()
    },
    deliver: (raw, { atMs, labelIds = ['INBOX'] } = {}) =>
      sim.gmail.mailbox(ANN).insert({
        raw: Buffer.from(raw as string),
        labelIds,
        internalMs: atMs ?? Date.UTC(2021, 5, 1),
      }).id,
    async close() {
      await api.closeApi()
      await sim.close()
      rmSync(home, { recursive: true, force: true })
    },
  }
}

/** A mail with HTML that tries a lot, an inline picture, and a file with a bad name. */
export function hostileMail(html: string): string {
  const lines = [
    'From: "Eve <script>alert(1)</script>" <eve@example.com>',
    `To: ${ANN}`,
    'Subject: Quarterly <img src=x onerror=alert(1)> report',
    'Date: Tue, 01 Jun 2021 00:00:00 +0000',
    'Message-ID: <hostile@example.com>',
    'MIME-Version: 1.0',
    'Content-Type: multipart/mixed; boundary=outer',
    '',
    '--outer',
    'Content-Type: text/html; charset=utf-8',
    'Content-Transfer-Encoding: base64',
    '',
    Buffer.from(html).toString('base64'),
    '--outer',
    'Content-Type: image/png; name=dot.png',
    'Content-ID: <dot@example.com>',
    'Content-Disposition: inline; filename=dot.png',
    'Content-Transfer-Encoding: base64',
    '',
    DOT_PNG,
    '--outer',
    'Content-Type: text/html; name="../../evil.html"',
    'Content-Disposition: attachment; filename="../../evil\r\n .html"',
    '',
    '<script>alert(1)</script>',
    '--outer--',
    '',
  ]
  return lines.join('\r\n')
}

export const DOT_PNG =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
