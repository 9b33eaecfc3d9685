/** A process of the assistant as tests have it: an engine on a real ledger, and what its jobs need. It knows no simulation. */
import { type Clock, systemClock } from '../../base/clock.ts'
import { pinnedFetch } from '../../base/pinned-fetch.ts'
import { openVault, type Vault } from '../../base/vault.ts'
import { gmailBudgets } from '../../cloud/gmail/budgets.ts'
import { modelsSection } from '../../cloud/models/settings.ts'
import { createEngine, type Engine } from '../../engine/index.ts'
import { Accounts } from '../../ledger/accounts.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import { openLedger } from '../../ledger/open.ts'
import { openSearch, type Search } from '../../search/search.ts'
import type { ActionPlace } from './actions.ts'
import { openAgents } from './agent/open.ts'
import { AgentStore } from './agent/store.ts'
import { assistKinds, jobsOf } from './jobs.ts'
import type { AssistKinds } from './kinds.ts'
import { openLocalClassifier } from './local/classifier.ts'
import { type Models, openModels } from './models/ask.ts'
import { ModelCalls } from './models/store.ts'
import { openAssistAccounts } from './open-accounts.ts'
import type { AssistSettings } from './settings.ts'
import { AssistTables } from './store/tables.ts'

/** The machine's clock, which can be put forward. */
export class ShiftedClock implements Clock {
  aheadMs = 0
  now = (): number => systemClock.now() + this.aheadMs
  monotonicMs = (): number => systemClock.monotonicMs()
  watchLoop = (): ReturnType<Clock['watchLoop']> => systemClock.watchLoop()
  timer: Clock['timer'] = (ms, fn, options) => systemClock.timer(ms, fn, options)
}

/** What a process needs to know of the world. */
export type WorkerPlace = {
  clock: ShiftedClock
  settings: AssistSettings
  ledgerUrl: string
  home: string
  modelsUrl: string
  options: ModelOptions
  vault?: Vault
}

export type ModelOptions = {
  /** `off` for none. */
  provider?: 'openai-compatible' | 'off'
  dayCost?: number
  /** Of a million tokens, both ways; models that are not named cost nothing then. */
  prices?: Readonly<Record<string, number>>
  /** How long an answer of the model is awaited. */
  modelSeconds?: number
}

export type ChildOptions = Omit<WorkerPlace, 'clock' | 'vault'>

/** In a process of its own. */
export function startChildWorker(options: ChildOptions): Promise<Worker> {
  return Worker.open({ ...options, clock: new ShiftedClock() })
}

export class Worker implements ActionPlace {
  readonly ledger: Ledger
  readonly tables: AssistTables
  readonly accounts: Accounts
  readonly search: Search
  readonly calls: ModelCalls
  readonly runs: AgentStore
  engine!: Engine
  kinds!: AssistKinds
  models!: Models
  notes: { code: string; text: string }[] = []

  private constructor(parts: {
    ledger: Ledger
    tables: AssistTables
    accounts: Accounts
    search: Search
    calls: ModelCalls
    runs: AgentStore
  }) {
    this.ledger = parts.ledger
    this.tables = parts.tables
    this.accounts = parts.accounts
    this.search = parts.search
    this.calls = parts.calls
    this.runs = parts.runs
  }

  /** `takesJobs` false: for what people ask for on pages; jobs are left to others. */
  static async open(world: WorkerPlace, { takesJobs = true } = {}): Promise<Worker> {
    const { clock, settings, options } = world
    const ledger = await openLedger(world.ledgerUrl, { clock })
    const worker = new Worker({
      ledger,
      tables: await AssistTables.open(ledger),
      accounts: await Accounts.open(ledger),
      search: openSearch({ ledger }),
      calls: await ModelCalls.open(ledger),
      runs: await AgentStore.open(ledger),
    })
    const vault = await openVault({ env: {}, home: world.home })
    world.vault = vault
    const models = modelsSection.schema.parse({
      provider: options.provider ?? 'openai-compatible',
      base_url: world.modelsUrl,
      model: 'sim-model',
      ...(options.dayCost !== undefined && { day_cost: options.dayCost, input_price: 1, output_price: 1 }),
      ...(options.dayCost === undefined && { day_tokens: 0 }),
      ...(options.prices && {
        prices: Object.entries({ 'sim-model': 0, ...options.prices }).map(([model, price]) => ({
          model,
          input: price,
          output: price,
        })),
      }),
      ...(options.modelSeconds !== undefined && { timeout_seconds: options.modelSeconds }),
    })
    const accounts = await openAssistAccounts({
      accounts: worker.accounts,
      tables: worker.tables,
      vault,
      settings,
      fetch: globalThis.fetch,
      clock,
      limits: () => worker.engine?.limits,
    })
    let ids = 0
    const newId = (): string => `id${process.pid}-${ids++}-${Math.trunc(clock.monotonicMs() * 1000)}`
    const asked = openModels({
      place: { config: { models } as never, vault, fetch: globalThis.fetch, clock },
      store: worker.calls,
    })
    worker.models = asked
    const note = (code: string, text: string): void => void worker.notes.push({ code, text })
    const agents = await openAgents({
      ledger,
      clock,
      fetch: globalThis.fetch,
      web: pinnedFetch({ resolve: async () => [] }),
      env: {},
      home: world.home,
      newId,
      search: async () => worker.search,
      ask: (question) => asked.ask({ ...question, purpose: 'agent' }),
      isAdmins: async () => true,
      note,
    })
    worker.kinds = assistKinds({
      ledger,
      accounts,
      tables: worker.tables,
      clock,
      settings,
      models: asked,
      local: openLocalClassifier({ embed: undefined }),
      search: async () => worker.search,
      agents,
      note,
    })
    const budgets = gmailBudgets(accounts.names(), settings)
    worker.engine = await createEngine({ ledger, jobs: jobsOf(worker.kinds), budgets, clock })
    if (takesJobs) await worker.engine.start()
    return worker
  }

  async stop(): Promise<void> {
    await this.engine.stop()
    await this.search.close()
    await this.ledger.close()
  }
}
