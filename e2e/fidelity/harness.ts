/**
 * Clients that other people wrote, unchanged, against the simulated cloud: call by call, each of which works or does not.
 * All our proofs rest on the simulators, so what they answer is judged by who knows the real services.
 *
 * Calls of one client run in order and on a cloud of their own; one may use what an earlier one has made.
 */
import type { Sim, SimOptions } from '../../src/sim/start.ts'

export const ANN = 'ann@example.com'
export const BEN = 'ben@example.com'
export const MODEL = 'sim-model'
export const API_KEY = 'sk-of-the-simulated-cloud'

export type Call = {
  call: string
  run(): Promise<unknown>
  /** Not in the short form. */
  isLong?: true
}

export type Client = {
  /** Its package, and the version where there are several. */
  client: string
  world: SimOptions
  calls(sim: Sim): readonly Call[]
  /** Methods that the client has and the simulator does not. */
  leftOut?: readonly string[]
}

export type Row = { client: string; call: string; passed: boolean; problem?: string }

export type Fidelity = { rows: Row[]; leftOut: Record<string, readonly string[]> }

export async function runClients(
  clients: readonly Client[],
  options: {
    startSim: (options: SimOptions) => Promise<Sim>
    isShort?: boolean
    /** After each call. */
    onRow?: (row: Row) => void
  },
): Promise<Fidelity> {
  const found: Fidelity = { rows: [], leftOut: {} }
  for (const { client, world, calls, leftOut = [] } of clients) {
    const sim = await options.startSim({ seed: 7, ...world })
    try {
      for (const { call, run, isLong } of calls(sim)) {
        if (isLong && options.isShort) continue
        const problem = await problemOf(run)
        const row: Row = { client, call, passed: problem === undefined }
        if (problem !== undefined) row.problem = problem
        found.rows.push(row)
        options.onRow?.(row)
      }
    } finally {
      await sim.close()
    }
    if (leftOut.length > 0) found.leftOut[client] = leftOut
  }
  return found
}

async function problemOf(run: () => Promise<unknown>): Promise<string | undefined> {
  try {
    await run()
    return undefined
  } catch (thrown) {
    const text = thrown instanceof Error ? thrown.message || thrown.name : String(thrown)
    return text.split('\n').slice(0, 4).join(' ').slice(0, 200)
  }
}

export function callsOf(calls: Readonly<Record<string, () => Promise<unknown>>>): Call[] {
  return Object.entries(calls).map(([call, run]) => ({ call, run }))
}

/** The status of a refusal, as clients hand it over. */
export async function refusal(call: Promise<unknown>): Promise<number> {
  try {
    await call
  } catch (thrown) {
    const { status, statusCode, code, response } = thrown as Record<string, unknown> & {
      response?: { status?: unknown }
    }
    return Number(response?.status ?? statusCode ?? status ?? code)
  }
  throw new Error('The call was to be refused, and was not.')
}

/** `users.messages.list`: every method of a client of Google. */
export function methodsOf(client: object, prefix = ''): string[] {
  const own = Object.getOwnPropertyNames(Object.getPrototypeOf(client)).filter(
    (name) => name !== 'constructor',
  )
  const below = Object.entries(client).filter(
    ([, value]) =>
      typeof value === 'object' && value !== null && value.constructor.name.startsWith('Resource'),
  )
  return [
    ...own.map((name) => prefix + name),
    ...below.flatMap(([name, value]) => methodsOf(value as object, `${prefix}${name}.`)),
  ]
}
