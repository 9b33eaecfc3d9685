/**
 * Agents on a real database, with a model whose answers are scripted and a mailbox that only remembers what was done to
 * it. Every commit and every act on the mailbox is a point at which the process may die, before or after it.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freshDatabase } from '../../../../scripts/test-database.ts'
import { type Clock, systemClock } from '../../../base/clock.ts'
import { TidemarkError } from '../../../base/errors.ts'
import type { Ledger } from '../../../ledger/ledger.ts'
import { openLedger } from '../../../ledger/open.ts'
import type { VisibleMessage } from '../contract.ts'
import { type Agents, type AgentsOptions, type AgentTask, openAgents } from './open.ts'
import { describedMessage } from './router.ts'
import type { AgentResult } from './run.ts'
import type { Step } from './store.ts'
import type { SentMail } from './tools/send.ts'

export const ACCOUNT = 'owner@example.com'
export const THREAD = 'thread-1'

export type Asked = Parameters<AgentsOptions['ask']>[0]
type Said = { text?: string; toolCalls?: readonly { name: string; input: unknown }[]; costMicros?: number }
/** By how often it was asked in this run before, as the conversation shows. */
export type Script = (asked: Asked, turn: number) => Said | Promise<Said>

/** The process dies here. Not of a kind that ends a run: the job would be begun again. */
export class Crash extends TidemarkError {
  constructor(point: string) {
    super(`died ${point}`, { kind: 'transient', code: 'crash' })
  }
}

export type AgentWorld = {
  agents: Agents
  options: AgentsOptions
  ledger: Ledger
  /** What was done to the mailbox, each time. */
  acts: string[]
  /** Drafts that are there, by their keys. */
  drafts: Map<string, { text: string; mime: string }>
  labels: string[]
  sent: SentMail[]
  asked: Asked[]
  notes: string[]
  script: Script
  /** The point at which it dies; counted down. */
  dieAt: number | undefined
  points: number
  threads: Map<string, readonly VisibleMessage[]>
  putDraft: AgentTask['hands']['putDraft'] | undefined
  home: string
  task(over?: Partial<AgentTask>): AgentTask
  run(over?: Partial<AgentTask>): Promise<AgentResult>
  steps(): Promise<Step[]>
  close(): Promise<void>
}

export function mail(over: Partial<VisibleMessage> = {}): VisibleMessage {
  const base = describedMessage({
    from: 'Eve <eve@client.example>',
    subject: 'Order 4711',
    text: 'Where is it?',
  })
  return { ...base, id: 'message-1', threadId: THREAD, messageId: '<m1@client.example>', ...over }
}

export const DATABASES = ['sqlite', 'postgres'] as const

export async function startAgents(
  over: Partial<AgentsOptions> & { database?: (typeof DATABASES)[number]; clock?: Clock } = {},
): Promise<AgentWorld> {
  const { database = 'sqlite', ...own } = over
  const home = mkdtempSync(join(tmpdir(), 'tidemark-agents-'))
  const fresh = database === 'postgres' ? await freshDatabase() : undefined
  // No power is cut here: what dies is the process.
  const ledger = await openLedger(fresh?.url ?? `sqlite:${join(home, 'ledger.db')}`, {
    synchronous: 'NORMAL',
  })
  let ids = 0
  const point = (name: string): void => {
    w.points += 1
    if (w.dieAt === undefined) return
    w.dieAt -= 1
    if (w.dieAt === 0) throw new Crash(name)
  }
  const options: AgentsOptions = {
    ledger,
    clock: systemClock,
    fetch: async () => {
      throw new Error('nothing is asked of the web here')
    },
    web: async () => {
      throw new Error('nothing is asked of the web here')
    },
    env: {},
    home,
    newId: () => `id-${++ids}`,
    search: async () => {
      throw new Error('there is no index here')
    },
    ask: async (asked) => {
      w.asked.push(asked)
      const turn = asked.messages.filter(({ role }) => role === 'assistant').length
      const { text = '', toolCalls = [], costMicros = 7 } = await w.script(asked, turn)
      return { text, toolCalls, costMicros }
    },
    isAdmins: async () => true,
    note: (code, text) => void w.notes.push(`${code}: ${text}`),
    ...own,
  }
  const w: AgentWorld = {
    agents: await openAgents(options),
    options,
    ledger,
    acts: [],
    drafts: new Map(),
    labels: [],
    sent: [],
    asked: [],
    notes: [],
    script: () => ({ text: 'Nothing to do.' }),
    dieAt: undefined,
    points: 0,
    threads: new Map(),
    putDraft: undefined,
    home,
    task: (more = {}) => ({
      key: 'run-1',
      account: ACCOUNT,
      owner: { name: 'Owner', address: ACCOUNT },
      profiles: [],
      profile: 'desk',
      rule: 'all',
      thread: [mail()],
      message: mail(),
      reader: async () => ({ principals: [`gmail:${ACCOUNT}`] }),
      readThread: async (id) => {
        w.acts.push(`read ${id}`)
        return w.threads.get(id)
      },
      hands: {
        putDraft: async (draft, signal) => {
          if (w.putDraft) return w.putDraft(draft, signal)
          point('before a draft')
          w.acts.push(`draft ${draft.key}`)
          const outcome = w.drafts.has(draft.key) ? 'adopted' : 'made'
          w.drafts.set(draft.key, { text: draft.text, mime: Buffer.from(draft.mime).toString() })
          point('after a draft')
          return { outcome }
        },
        send: async (mail) => {
          point('before a mail is sent')
          if (!w.sent.some(({ key }) => key === mail.key)) w.sent.push(mail)
          point('after a mail is sent')
          return 'sent'
        },
        applyLabel: async (role) => {
          point('before a label')
          w.acts.push(`label ${role}`)
          w.labels.push(role)
          point('after a label')
        },
      },
      commit: async (effects) => {
        point('before a commit')
        await ledger.driver.transaction(async (tx) => effects(tx))
        point('after a commit')
      },
      signal: new AbortController().signal,
      ...more,
    }),
    run: (more) => w.agents.run(w.task(more)),
    steps: async () => {
      const run = await w.agents.store.byKey('run-1')
      return run ? w.agents.store.steps(run.id) : []
    },
    async close() {
      await ledger.close()
      await fresh?.drop()
      rmSync(home, { recursive: true, force: true })
    },
  }
  return w
}

export async function withAgents(
  over: Parameters<typeof startAgents>[0],
  run: (world: AgentWorld) => Promise<void>,
): Promise<void> {
  const world = await startAgents(over)
  try {
    await run(world)
  } finally {
    await world.close()
  }
}
