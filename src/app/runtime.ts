/**
 * A process at work: the ledger, an engine on it, and the apps that it opened.
 *
 *   App, a constant ──open(place)──▶ OpenApp, one for a process ──work(runtime)──▶ AppWork, where jobs are run
 */
import type { Clock } from '../base/clock.ts'
import type { PinnedFetch } from '../base/pinned-fetch.ts'
import type { Vault } from '../base/vault.ts'
import type { Fetch } from '../cloud/oauth.ts'
import type { Environment, Origin } from '../config/location.ts'
import type { Config } from '../config/settings.ts'
import type { Engine } from '../engine/engine.ts'
import type { BudgetSpec } from '../engine/index.ts'
import type { AnyJobKind } from '../engine/job-kind.ts'
import type { AlertInputs } from '../engine/observe/alert-rules.ts'
import type { MetricFamily } from '../engine/observe/metrics.ts'
import type { Accounts } from '../ledger/accounts.ts'
import type { StreamRow } from '../ledger/contract.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { Users } from '../ledger/users.ts'
import type { Need } from './need.ts'
import type { SearchHandle } from './search.ts'
import type { Sources } from './sources.ts'

/** `web` answers and runs no jobs; `worker` runs jobs and answers nothing but its health. */
export type Role = 'all' | 'web' | 'worker'

export type Origins = ReadonlyMap<string, Origin>

/** What is needed of an app to open it. */
export type AppOpening<Open extends OpenApp = OpenApp> = {
  /** Its noun on the command line, its routes (`/api/<name>/…`), the prefix of its kinds (`mail.`) and streams (`mail:`). */
  readonly name: string
  open(place: AppPlace): Promise<Open>
}

/** What an app is opened with. */
export type AppPlace = {
  role: Role
  /** As it holds now: `reload` changes it in place. */
  config: Config
  home: string
  env: Environment
  ledger: Ledger
  accounts: Accounts
  users: Users
  vault: Vault
  /** Where what an app keeps is made findable. */
  search: SearchHandle
  clock: Clock
  fetch: Fetch
  /** The addresses of a host. */
  resolve: (host: string) => Promise<readonly string[]>
  /** For addresses that others choose: connects to none inside a network. */
  web: PinnedFetch
  newId: () => string
  /** There is one once all apps are open: nothing is enqueued before. */
  engine: () => Engine | undefined
  /** What a command says about one run, over the configuration; by the name of the app. */
  overrides: Readonly<Record<string, unknown>>
}

/** What an app tells of its streams from the ledger alone: a status needs no engine. */
export type AppLook = {
  /** How its streams are shown: those that nobody wants to hear of are left out. As they are where it is missing. */
  shownStreams?<Row extends StreamRow>(rows: readonly Row[]): Promise<readonly ShownStream<Row>[]>
  /** What waits for a person: neither the verdict over everything nor that of a stream may call it settled. */
  needs?(): Promise<readonly Need[]>
}

export type OpenApp = AppLook & {
  readonly jobs: readonly AnyJobKind[]
  /** What it keeps up to date. */
  readonly sources: Sources
  budgets(): Record<string, BudgetSpec>
  /** With fewer workers than this, its sources would be in the way of everything else. */
  workersMin?(): number
  /** What it keeps in the ledger besides jobs, for the alert about its size. */
  metadata?(): Promise<NonNullable<AlertInputs['metadata']>>
  /** For Prometheus, with each scrape; names begin with `tidemark_<app>_`. */
  metrics?(): Promise<readonly MetricFamily[]>
  /** Begins what every source needs, and goes on so until it is stopped. */
  work(runtime: Runtime, options: WorkOptions): Promise<AppWork>
  /** Takes over what has changed in the configuration and among its sources. */
  reload(): Promise<void>
  close(): Promise<void>
}

/** `whole`: how many items the source has by what it says itself, where it says so. */
export type ShownStream<Row = StreamRow> = Row & { whole?: number | undefined }

export type WorkOptions = {
  clock: Clock
  onError: (error: unknown) => void
  everyMs?: number
}

export type AppWork = {
  /** Sees at once which sources were added, changed or removed. */
  refresh(): Promise<void>
  stop(): Promise<void>
}

/** Everything that a process of Tidemark works with: the ledger, an engine on it, and the apps that it opened. */
export type Runtime = {
  role: Role
  config: Config
  /** Where each setting came from, by key; a default where it is not named. */
  origins: Origins
  home: string
  ledger: Ledger
  /** Not started where the role is `web`: it enqueues and steers through the ledger all the same. */
  engine: Engine
  accounts: Accounts
  users: Users
  vault: Vault
  search: SearchHandle
  fetch: Fetch
  /** Not to be guessed. */
  newId: () => string
  chanceBytes: (count: number) => Uint8Array
  apps: ReadonlyMap<string, OpenApp>
}

export type OpenRuntime = Runtime & {
  /** From now on sources that fall silent are told of: see stale.ts. */
  watchSources(): void
  /** Stops the engine, then closes the apps and the ledger. */
  close(): Promise<void>
  /**
   * Takes over what can change in a running process: workers, budgets, sizes, how often sources are looked at (with the
   * next `refresh` of their work). What needs a new start stays as it is, here and in what is told.
   */
  reload(config: Config, origins?: Origins): Promise<void>
}

/** For an app, which knows its own name and what it opens. */
export function openedApp<Open extends OpenApp>(runtime: Pick<Runtime, 'apps'>, name: string): Open {
  const app = runtime.apps.get(name)
  if (!app) throw new Error(`The app ${name} is not open in this process.`)
  return app as Open
}
