/** Starts a simulated cloud in this process: for tests, benches, the demo and `tidemark sim`. */
import { type Clock, systemClock } from '../base/clock.ts'
import { UsageError } from '../base/errors.ts'
import { CallLog } from './call-log.ts'
import { Control } from './control.ts'
import { faultProfiles } from './fault-profiles.ts'
import type { FaultsInput } from './fault-rules.ts'
import { Faults } from './faults.ts'
import { type SimServices, simServices } from './registry.ts'
import { type NamedRoutes, type SimServer, startServer } from './server.ts'
import {
  type Kernel,
  type OAuthSettings,
  oauthDefaults,
  type RunningService,
  type SimService,
} from './service.ts'

/** The world of each service by its name, and what holds for all of them. */
export type SimOptions = {
  readonly [Name in keyof SimServices]?: Parameters<SimServices[Name]['start']>[1]
} & {
  /** 0 or nothing: any free one. */
  port?: number
  seed?: number
  clock?: Clock
  faults?: FaultsInput
  oauth?: Partial<OAuthSettings>
}

export type Sim = {
  readonly [Name in keyof SimServices]: Awaited<ReturnType<SimServices[Name]['start']>>
} & {
  port: number
  /** Of the server that all services share. */
  baseUrl: string
  controlUrl: string
  faults: Faults
  oauth: OAuthSettings
  log: CallLog
  close(): Promise<void>
}

export async function startSim(options: SimOptions): Promise<Sim> {
  const { clock = systemClock, seed = 1 } = options
  const faults = new Faults({ seed, clock, profiles: faultProfiles })
  if (options.faults) faults.set(options.faults)
  const log = new CallLog()
  let server: SimServer | undefined
  const kernel: Kernel = {
    clock,
    seed,
    faults,
    log,
    oauth: { ...oauthDefaults, ...options.oauth },
    origin: () => server?.origin ?? '',
  }
  const services = await startServices(kernel, options)
  const control = new Control(kernel, services, { profiles: Object.keys(faultProfiles) })
  const routes: NamedRoutes[] = Object.entries(services).flatMap(([service, { routes: own }]) =>
    own.map((one) => ({ service, match: (call) => one.match(call) })),
  )
  server = await startServer({
    port: options.port ?? 0,
    routes: [...routes, { service: 'control', match: (call) => control.match(call) }],
    faults,
    clock,
    onServed: (served) => log.note(served),
    onBytes: (operation, bytes) => log.noteBytes(operation, bytes),
  })
  const { port, origin, close } = server
  const sim = {
    ...services,
    port,
    baseUrl: origin,
    controlUrl: `${origin}/control`,
    faults,
    oauth: kernel.oauth,
    log,
    async close() {
      await close()
      await Promise.all(Object.values(services).map((service) => service.close?.()))
    },
  }
  // Each service was started by its own line of the registry, so each is of its own type.
  return sim as unknown as Sim
}

type AnyService = SimService<object, RunningService>

async function startServices(kernel: Kernel, options: SimOptions): Promise<Record<string, RunningService>> {
  const services: Record<string, RunningService> = {}
  let isEmpty = true
  // One after the other: services that share a sign-in draw their first tokens in this order.
  for (const [name, service] of Object.entries(simServices) as [keyof SimServices, AnyService][]) {
    const own = options[name]
    services[name] = await service.start(kernel, own ?? {})
    const isUsed = service.hasAccounts === false ? own !== undefined : services[name].addresses.length > 0
    if (isUsed) isEmpty = false
  }
  if (isEmpty) throw new UsageError('A simulated cloud needs an account.')
  return services
}
