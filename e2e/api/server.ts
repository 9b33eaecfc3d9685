/** A whole server as a process, on a simulated Gmail: what a stranger with the address and the token meets. */
import { execFileSync } from 'node:child_process'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pass } from 'node:timers/promises'
import { connectAnn, DOT_PNG } from '../../src/apps/files/api/files-api.suite.ts'
import { hostileMail } from '../../src/apps/mail/api/mail-api.suite.ts'
import { openVault } from '../../src/base/vault.ts'
import { Accounts } from '../../src/ledger/accounts.ts'
import { openLedger } from '../../src/ledger/open.ts'
import type { FaultRule } from '../../src/sim/fault-rules.ts'
import { type Ended, World } from '../mail/world.ts'

export const ANN = 'ann@example.com'
export const BOB = 'bob@example.com'
export const TOKEN = 'a-token-for-the-contract-tests'
export const WRITE = { 'x-tidemark': '1', 'content-type': 'application/json' }

export const PUSH_AUDIENCE = 'https://tidemark.example.com/api/assist/push'
const MODEL = 'simulated-model'
const LOOK_MS = 20
const WAIT_MS_MAX = 240_000
/** Of Ann: messages that the service has refused to give. */
export const BAD_ITEMS = 3
/** Nothing that trying again soon would help against, so a message is a bad item at once. */
export const REFUSAL = {
  ...({ do: 'error', status: 400, reason: 'invalidArgument', on: 'part' } as const),
  account: ANN,
  methods: ['messages.get'],
} satisfies FaultRule
const FROM_MS = Date.UTC(2021, 0, 1)

export type ApiServer = {
  world: World
  url: string
  /** Of Ann: a message that is HTML with a picture and an attachment. */
  htmlId: string
  /** The folder of Ann that is kept in step with her OneDrive, as `docs`. */
  docs: string
  /** As who holds the token. */
  ask(path: string, init?: RequestInit): Promise<Response>
  /** What the process has written to its log. */
  log(): string
  memoryBytes(): number
  /** Ends the process gracefully, and everything else. */
  close(): Promise<Ended>
}

export async function startApiServer(options: { messages?: number } = {}): Promise<ApiServer> {
  const accounts = [
    { address: ANN, messages: options.messages ?? 60, fromMs: FROM_MS },
    { address: BOB, messages: 5, fromMs: FROM_MS },
  ]
  const settings = { TIDEMARK_SERVER_TOKEN: TOKEN }
  const world = await World.start({
    messages: 0,
    accounts,
    onedrive: { drives: [{ account: ANN }] },
    drive: { users: [ANN], documents: 12, quota: { unitsPerMinute: null } },
    models: { models: [MODEL] },
    settings,
  })
  const { sim } = world
  Object.assign(world.env, {
    TIDEMARK_GMAIL_REVOKE_URL: sim.gmail.revokeUrl,
    TIDEMARK_GMAIL_CLIENT_ID: sim.gmail.clientId,
    TIDEMARK_GMAIL_CLIENT_SECRET: sim.gmail.clientSecret,
    TIDEMARK_GOOGLE_DRIVE_API_URL: sim.baseUrl,
    TIDEMARK_GOOGLE_DRIVE_AUTH_URL: sim.drive.authUrl,
    TIDEMARK_GOOGLE_DRIVE_TOKEN_URL: sim.drive.tokenUrl,
    TIDEMARK_GOOGLE_DRIVE_REVOKE_URL: sim.drive.revokeUrl,
    TIDEMARK_GOOGLE_DRIVE_CLIENT_ID: sim.drive.clientId,
    TIDEMARK_GOOGLE_DRIVE_CLIENT_SECRET: sim.drive.clientSecret,
    TIDEMARK_MODELS_PROVIDER: 'openai-compatible',
    TIDEMARK_MODELS_BASE_URL: sim.models.baseUrl,
    TIDEMARK_MODELS_MODEL: MODEL,
    TIDEMARK_ASSIST_PUSH_AUDIENCE: PUSH_AUDIENCE,
    TIDEMARK_ASSIST_PUSH_ACCOUNT: sim.gmail.push.settings.email,
    TIDEMARK_ASSIST_PUSH_KEYS_URL: `${sim.baseUrl}/oauth2/v3/certs`,
    TIDEMARK_LOG_FORMAT: 'json',
  })
  const place = realpathSync(mkdtempSync(join(tmpdir(), 'tidemark-api-folders-')))
  await prepareFiles(world, place)
  const raw = Buffer.from(hostileMail('<p>Hello <b>Ann</b></p><img src="cid:dot@example.com">'))
  const { id: htmlId } = sim.gmail
    .mailbox(ANN)
    .insert({ raw, labelIds: ['INBOX'], internalMs: Date.UTC(2021, 5, 1) })
  sim.faults.set({ rules: [{ ...REFUSAL, max: BAD_ITEMS }] })
  const { child, ended } = world.start(['--json', 'serve', '--port', '0'])
  let log = ''
  child.stderr?.on('data', (text: Buffer) => (log += text.toString()))
  const url = await new Promise<string>((resolve, reject) => {
    child.stdout?.once('data', (line: Buffer) => resolve((JSON.parse(String(line)) as { url: string }).url))
    void ended.then(({ code, stderr }) => reject(new Error(`the server ended with ${code}: ${stderr}`)))
  })
  const ask: ApiServer['ask'] = (path, init = {}) =>
    fetch(url + path, { ...init, headers: { authorization: `Bearer ${TOKEN}`, ...init.headers } })
  await addDocs(ask, place)
  return {
    world,
    url,
    htmlId,
    docs: join(place, DOCS),
    ask,
    log: () => log,
    memoryBytes: () => residentBytes(child.pid!),
    async close() {
      child.kill('SIGTERM')
      const end = await ended
      await world.close()
      rmSync(place, { recursive: true, force: true })
      return end
    },
  }
}

export const DOCS = 'docs'

/** A OneDrive with a few files and its account; nothing is asked for but when a test wants it. */
async function prepareFiles({ sim, env, home }: World, place: string): Promise<void> {
  Object.assign(env, {
    ...{
      TIDEMARK_ONEDRIVE_API_URL: sim.onedrive.graphUrl,
      TIDEMARK_ONEDRIVE_TOKEN_URL: sim.onedrive.tokenUrl,
    },
    ...{
      TIDEMARK_ONEDRIVE_AUTH_URL: sim.onedrive.authUrl,
      TIDEMARK_ONEDRIVE_DEVICE_URL: sim.onedrive.deviceUrl,
    },
    TIDEMARK_FILES_POLL_SECONDS: '86400',
    TIDEMARK_FILES_DISK_RESERVE: '1MB',
    TIDEMARK_FILES_ALLOWED_ROOTS: JSON.stringify([place]),
  })
  const { device } = sim.onedrive.drive(ANN)
  device.write('Plans/garden.txt', 'roses')
  device.write('dot.png', DOT_PNG)
  for (let at = 0; at < DOCS_FILES; at++) device.write(`Many/file ${at}.txt`, `content ${at}`)
  const ledger = await openLedger(`sqlite:${join(home, 'ledger.db')}`)
  try {
    await connectAnn({ accounts: await Accounts.open(ledger), vault: await openVault({ env, home }) }, sim)
  } finally {
    await ledger.close()
  }
}

/** In its folder `Many`. */
export const DOCS_FILES = 15

async function addDocs(ask: ApiServer['ask'], place: string): Promise<void> {
  mkdirSync(join(place, DOCS))
  writeFileSync(join(place, DOCS, 'what?.txt'), 'a name that OneDrive does not take')
  const body = JSON.stringify({ path: join(place, DOCS), policy: 'manual' })
  const added = await ask('/api/files/folders', { method: 'POST', headers: WRITE, body })
  if (added.status !== 201) throw new Error(`the folder was not added: ${await added.text()}`)
}

/** Looks again and again until it is so. */
export async function until<T>(look: () => Promise<T | undefined | false>, what: string): Promise<T> {
  const endMs = performance.now() + WAIT_MS_MAX
  for (;;) {
    const seen = await look()
    if (seen) return seen
    if (performance.now() > endMs) throw new Error(`waited ${WAIT_MS_MAX} ms in vain: ${what}`)
    await pass(LOOK_MS)
  }
}

/** Linux tells it in a file; elsewhere `ps` does. */
function residentBytes(pid: number): number {
  const file = `/proc/${pid}/status`
  const kib = existsSync(file)
    ? /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(file, 'utf8'))?.[1]
    : execFileSync('ps', ['-o', 'rss=', '-p', String(pid)], { encoding: 'utf8' }).trim()
  return Number(kib) * 1_024
}
