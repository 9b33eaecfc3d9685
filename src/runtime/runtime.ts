/**
 * Opens a runtime: the ledger, the apps that are asked for, and an engine with their jobs. A command that syncs opens
 * one and closes it at its end; `serve` keeps one open.
 *
 * States: open → closed. Opening starts nothing: whoever wants jobs to run starts the engine. What `reload` changes
 * it changes in place, so that copies of the runtime see it as well.
 */
import { randomBytes, randomUUID } from 'node:crypto'
import { lookup } from 'node:dns/promises'
import type { AppOpening, AppPlace, OpenApp, OpenRuntime, Origins, Role, Runtime } from '../app/runtime.ts'
import { StaleWatch } from '../app/stale.ts'
import { type Clock, systemClock } from '../base/clock.ts'
import { pinnedFetch } from '../base/pinned-fetch.ts'
import { openVault } from '../base/vault.ts'
import type { Fetch } from '../cloud/oauth.ts'
import { type Environment, locateLedger, type Origin } from '../config/location.ts'
import type { Config } from '../config/settings.ts'
import { createEngine, type Engine, type EngineOptions } from '../engine/engine.ts'
import { webhookSink } from '../engine/observe/alert-delivery.ts'
import type { AlertThresholds } from '../engine/observe/alert-rules.ts'
import { Accounts } from '../ledger/accounts.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { openLedger } from '../ledger/open.ts'
import { Users } from '../ledger/users.ts'
import { desktopSinks } from './desktop.ts'
import { searchHandle } from './search.ts'

export type OpenRuntimeInput = {
  config: Config
  origins?: Origins
  home: string
  /** For the master key. */
  env: Environment
  role: Role
  clock?: Clock
  fetch?: Fetch
  /** Only these: what an app keeps in the ledger is made when it is opened. */
  apps: readonly AppOpening[]
  /** What holds for this process, over the configuration: see AppPlace. */
  appOverrides?: Readonly<Record<string, unknown>>
  /** How the process is called among the workers. */
  name?: string
  /** False where a missing ledger is an error, with the code `ledger-unmade`. */
  create?: boolean
}

export async function openRuntime(input: OpenRuntimeInput): Promise<OpenRuntime> {
  const { clock = systemClock, create = true } = input
  const location = locateLedger(input.config.ledger.url, input.home)
  const url = location.database === 'sqlite' ? `sqlite:${location.path}` : location.url
  const ledger = await openLedger(url, { clock, create, token: input.config.ledger.token })
  try {
    return await openOn(ledger, { ...input, clock })
  } catch (thrown) {
    await ledger.close()
    throw thrown
  }
}

async function addressesOf(host: string): Promise<string[]> {
  return (await lookup(host, { all: true })).map(({ address }) => address)
}

async function openOn(ledger: Ledger, input: OpenRuntimeInput & { clock: Clock }): Promise<OpenRuntime> {
  const { clock, home, env, role, fetch = globalThis.fetch } = input
  const config = structuredClone(input.config)
  const accounts = await Accounts.open(ledger)
  const users = await Users.open(ledger)
  const vault = await openVault({ env, home })
  let engine: Engine | undefined
  const search = searchHandle({
    config,
    ledger,
    clock,
    fetch: fetch as typeof globalThis.fetch,
    engine: () => engine,
  })
  const place: AppPlace = {
    role,
    config,
    home,
    env,
    ledger,
    accounts,
    users,
    vault,
    search,
    clock,
    fetch,
    resolve: addressesOf,
    web: pinnedFetch({ resolve: addressesOf }),
    newId: randomUUID,
    engine: () => engine,
    overrides: input.appOverrides ?? {},
  }
  const apps = new Map<string, OpenApp>()
  const staleWatch = new StaleWatch({ ledger, clock, apps, engine: () => engine })
  const closeApps = (): Promise<void> => each([...apps.values()].reverse(), (app) => app.close())
  try {
    for (const app of input.apps) {
      // The app of search finds the index itself under its name.
      if (app.name in place && app.name !== 'search') throw new Error(`An app cannot be called ${app.name}.`)
      apps.set(app.name, await app.open(place))
    }
    engine = await engineOf(apps, place, { name: input.name, staleWatch })
  } catch (thrown) {
    // Why it could not be opened says more than what closing it met.
    await closeApps().catch(() => {})
    throw thrown
  }
  const origins = new Map(input.origins)
  const runtime: Runtime = {
    role,
    config,
    origins,
    home,
    ledger,
    engine,
    accounts,
    users,
    vault,
    search,
    apps,
    fetch,
    newId: randomUUID,
    chanceBytes: randomBytes,
  }
  return {
    ...runtime,
    watchSources: () => staleWatch.begin(),
    close: once(async () => {
      const steps = [() => runtime.engine.stop(), closeApps, () => search.close(), () => ledger.close()]
      await each(steps, (step) => step())
    }),
    async reload(now, nowOrigins) {
      for (const section of Object.keys(now) as (keyof Config)[]) {
        if (!isFixed(section)) replaceIn(config[section], structuredClone(now[section]))
      }
      if (nowOrigins) takeOver(origins, nowOrigins)
      runtime.engine.reload(engineSizeOf(config, apps.values()))
      await each([...apps.values()], (app) => app.reload())
    },
  }
}

async function engineOf(
  apps: ReadonlyMap<string, OpenApp>,
  { config, ledger, clock, fetch, users, env }: AppPlace,
  { name = 'tidemark', staleWatch }: { name: string | undefined; staleWatch: StaleWatch },
): Promise<Engine> {
  const open = [...apps.values()]
  const { webhook_url: webhook, desktop } = config.alerts
  return createEngine({
    ledger,
    clock,
    name,
    ...engineSizeOf(config, open),
    jobs: open.flatMap(({ jobs }) => jobs),
    leaseMs: config.engine.lease_seconds * 1000,
    bulkBytes: config.engine.bulk_bytes,
    budgets: Object.assign({}, ...open.map((app) => app.budgets())),
    housekeeping: {
      ...retentionOf(config),
      pruneMore: async (nowMs) => {
        await users.pruneAudit(nowMs - auditKeptMs(config))
      },
      thresholds: thresholdsOf(config),
      sinks: [
        ...(webhook === undefined ? [] : [webhookSink({ url: webhook, fetch })]),
        ...(desktop === 'auto' ? desktopSinks({ env }) : []),
      ],
      stale: () => staleWatch.look(),
      metadata: async () =>
        (await Promise.all(open.map(async (app) => (await app.metadata?.()) ?? []))).flat(),
    },
  })
}

/** Opened or bound with the process: what was read anew of them does not hold. */
const FIXED: ReadonlySet<string> = new Set<keyof Config>(['ledger', 'server', 'alerts', 'search'])

const isFixed = (key: string): boolean => FIXED.has(key.split('.')[0]!)

function takeOver(kept: Map<string, Origin>, origins: Origins): void {
  for (const key of kept.keys()) if (!isFixed(key)) kept.delete(key)
  for (const [key, origin] of origins) if (!isFixed(key)) kept.set(key, origin)
}

/** What is not set any more must not stay: its default may be that there is none. */
function replaceIn(section: object, now: object): void {
  for (const key of Object.keys(section)) if (!(key in now)) delete section[key as keyof typeof section]
  Object.assign(section, now)
}

/** One after the other; what one fails with does not keep it from the rest, and is thrown at the end. */
async function each<T>(list: readonly T[], step: (one: T) => Promise<unknown>): Promise<void> {
  const failures: unknown[] = []
  for (const one of list) {
    try {
      await step(one)
    } catch (thrown) {
      failures.push(thrown)
    }
  }
  if (failures.length > 0) throw failures[0]
}

function once(fn: () => Promise<void>): () => Promise<void> {
  let ended: Promise<void> | undefined
  return () => {
    ended ??= fn()
    return ended
  }
}

const DAY_MS = 86_400_000

/** What may change while the engine runs. */
function engineSizeOf(
  { engine }: Config,
  apps: Iterable<OpenApp>,
): Pick<EngineOptions, 'workers' | 'window'> {
  const wanted = [...apps].map((app) => app.workersMin?.() ?? 0)
  return { workers: Math.max(engine.workers, ...wanted), window: engine.window }
}

function retentionOf({ ledger }: Config): { settledKeptMs: number; failedKeptMs: number } {
  return {
    settledKeptMs: ledger.prune_after_days * DAY_MS,
    failedKeptMs: ledger.failed_after_days * DAY_MS,
  }
}

/** What was done for users, and with whose eyes somebody searched. */
function auditKeptMs({ ledger }: Config): number {
  return ledger.audit_after_days * DAY_MS
}

function thresholdsOf({ alerts }: Config): Partial<AlertThresholds> {
  return {
    badWarnShare: alerts.bad_warn,
    badCriticalShare: alerts.bad_critical,
    badPerHourCritical: alerts.bad_per_hour_critical,
    throttledMs: alerts.throttled_minutes * 60_000,
    heartbeatMs: alerts.heartbeat_minutes * 60_000,
    staleMs: alerts.stale_minutes * 60_000,
  }
}
