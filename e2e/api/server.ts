/** A whole server as a process, on a simulated Gmail: what a stranger with the address and the token meets. */
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { setTimeout as pass } from 'node:timers/promises'
import { hostileMail } from '../../src/server/mail-api/mail-api.suite.ts'
import type { FaultRule } from '../../src/sim/fault-rules.ts'
import { type Ended, World } from '../mail/world.ts'

export const ANN = 'ann@example.com'
export const BOB = 'bob@example.com'
export const TOKEN = 'a-token-for-the-contract-tests'
export const WRITE = { 'x-tidemark': '1', 'content-type': 'application/json' }

const LOOK_MS = 20
const WAIT_MS_MAX = 60_000
/** Of Ann: messages that the service has refused to give. */
export const BAD_ITEMS = 3
/** Nothing that trying again soon would help against, so a message is a bad item at once. */
export const REFUSAL = {
  ...({ do: 'error', status: 400, reason: 'invalidArgument', on: 'part' } as const),
  ...{ account: ANN, methods: ['messages.get'] },
} satisfies FaultRule
const FROM_MS = Date.UTC(2021, 0, 1)

export type ApiServer = {
  world: World
  url: string
  /** Of Ann: a message that is HTML with a picture and an attachment. */
  htmlId: string
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
  const world = await World.start({ messages: 0, accounts, settings })
  const { sim } = world
  Object.assign(world.env, {
    ...{ TIDEMARK_GMAIL_REVOKE_URL: sim.revokeUrl, TIDEMARK_GMAIL_CLIENT_ID: sim.clientId },
    ...{ TIDEMARK_GMAIL_CLIENT_SECRET: sim.clientSecret, TIDEMARK_LOG_FORMAT: 'json' },
  })
  const raw = Buffer.from(hostileMail('<p>Hello <b>Ann</b></p><img src="cid:dot@example.com">'))
  const { id: htmlId } = sim
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
  return {
    ...{ world, url, htmlId, ask, log: () => log },
    memoryBytes: () => residentBytes(child.pid!),
    async close() {
      child.kill('SIGTERM')
      const end = await ended
      await world.close()
      return end
    },
  }
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
