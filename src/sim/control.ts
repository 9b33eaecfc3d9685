/**
 * The control API under /control: what a test, a bench or an oracle asks of the simulator beside the calls
 * that the real services know. Never faulted, never priced, JSON in and out. What concerns one service is
 * answered by that service.
 */
import { z } from 'zod'
import { TidemarkError, UsageError } from '../base/errors.ts'
import type { Faults } from './faults.ts'
import { jsonAnswer, type Operation, type Routes, type SimAnswer, type SimCall } from './server.ts'
import type { Kernel, RunningService } from './service.ts'

const PREFIX = '/control'

const strings = z.array(z.string())
/** Whose tokens: of an account at every service where it has one, unless one is named. */
const whose = { address: z.string().optional(), service: z.string().optional() }
const inputs = {
  oauth: z.strictObject({
    autoApprove: z.union([z.boolean(), z.string()]).optional(),
    deny: z.boolean().optional(),
    grantOnly: strings.nullable().optional(),
    delegatedScopes: strings.nullable().optional(),
    accessTokenMs: z.number().positive().optional(),
    refreshTokenMs: z.number().positive().nullable().optional(),
  }),
  issue: z.strictObject({ ...whose, scopes: strings.min(1).optional() }),
  tokens: z.strictObject({ ...whose, token: z.string().optional() }),
}

export class Control implements Routes {
  readonly #kernel: Kernel
  readonly #services: Readonly<Record<string, RunningService>>
  readonly #profiles: readonly string[]

  constructor(
    kernel: Kernel,
    services: Readonly<Record<string, RunningService>>,
    { profiles }: { profiles: readonly string[] },
  ) {
    this.#kernel = kernel
    this.#services = services
    this.#profiles = profiles
  }

  match(call: SimCall): Operation | undefined {
    if (call.path !== PREFIX && !call.path.startsWith(`${PREFIX}/`)) return undefined
    return {
      name: 'control',
      isExempt: true,
      run: () => this.#answer(call),
      refuse: ({ status, message }) => jsonAnswer({ error: message }, status),
    }
  }

  #answer(call: SimCall): SimAnswer {
    const pieces = call.path.slice(PREFIX.length).split('/').filter(Boolean).map(decodeURIComponent)
    try {
      let found = this.#general(call, `${call.verb} ${pieces.join('/')}`)
      for (const service of Object.values(this.#services)) found ??= service.control(call, pieces)
      return (
        found ?? jsonAnswer({ error: `There is no ${call.verb} ${call.path}; see src/sim/README.md.` }, 404)
      )
    } catch (error) {
      if (!(error instanceof TidemarkError)) throw error
      const status = error.code === 'sim-not-found' ? 404 : 400
      return jsonAnswer({ error: error.message, hint: error.hint }, status)
    }
  }

  #general(call: SimCall, what: string): SimAnswer | undefined {
    const { faults, log, oauth } = this.#kernel
    switch (what) {
      case 'GET ':
        return jsonAnswer({ accounts: this.#addresses(), profiles: this.#profiles })
      case 'GET faults':
        return this.#faults()
      case 'PUT faults':
        faults.set(jsonInput(call))
        return this.#faults()
      case 'DELETE faults':
        faults.clear()
        return this.#faults()
      case 'POST faults/rules':
        faults.add(jsonInput(call) as Parameters<Faults['add']>[0])
        return this.#faults()
      case 'GET oauth':
        return jsonAnswer(oauth)
      case 'PUT oauth':
        return jsonAnswer(Object.assign(oauth, parse(inputs.oauth, call)))
      case 'GET counters':
        return this.#counters()
      case 'DELETE counters':
        log.reset()
        for (const service of Object.values(this.#services)) service.resetCounters?.()
        return this.#counters()
      case 'GET log':
        return jsonAnswer({ calls: log.last(Number(call.query.get('limit') ?? 100) || 100) })
      default:
        return this.#tokens(call, what)
    }
  }

  #tokens(call: SimCall, what: string): SimAnswer | undefined {
    switch (what) {
      case 'GET tokens': {
        // Services may share a sign-in.
        const all = new Set(Object.values(this.#services).map(({ grants }) => grants))
        const lists = [...all].flatMap((grants) => grants?.list() ?? [])
        const access = lists.flatMap((list) => list.access)
        return jsonAnswer({ access, refresh: lists.flatMap((list) => list.refresh) })
      }
      case 'POST tokens': {
        const { scopes, ...asked } = parse(inputs.issue, call)
        const { address, services } = this.#known(asked)
        return jsonAnswer(services[0]!.issue!(address, scopes))
      }
      case 'POST tokens/revoke': {
        const { token, ...asked } = parse(inputs.tokens, call)
        if (token !== undefined) {
          const ended = Object.values(this.#services).map(({ grants }) => grants?.revoke(token) ?? false)
          return jsonAnswer({ revoked: ended.includes(true) })
        }
        const { address, services } = this.#known(asked)
        for (const { grants } of services) grants?.revokeAccount(address)
        return jsonAnswer({ revoked: true })
      }
      case 'POST tokens/expire': {
        const { address, services } = this.#known(parse(inputs.tokens, call))
        const expired = services.map(({ grants }) => grants?.expireAccess(address) ?? 0)
        return jsonAnswer({ expired: expired.reduce((sum, one) => sum + one, 0) })
      }
      default:
        return undefined
    }
  }

  /** The services with a sign-in where the address has an account. */
  #known(asked: { address?: string | undefined; service?: string | undefined }): {
    address: string
    services: RunningService[]
  } {
    const { address = '', service } = asked
    const services = Object.entries(this.#services)
      .filter(([name, one]) => one.issue && one.addresses.includes(address) && (service ?? name) === name)
      .map(([, one]) => one)
    if (services.length > 0) return { address, services }
    throw new UsageError(`There is no account ${address || '(none given)'}.`, {
      hint: `There are ${this.#addresses().join(', ')}.`,
    })
  }

  #addresses(): string[] {
    return [...new Set(Object.values(this.#services).flatMap(({ addresses }) => addresses))]
  }

  #faults(): SimAnswer {
    const { faults } = this.#kernel
    return jsonAnswer({ profile: faults.profile, rules: faults.counts(), poison: faults.poisoned })
  }

  #counters(): SimAnswer {
    const own = Object.values(this.#services).map((service) => service.counters?.())
    return jsonAnswer(Object.assign(this.#kernel.log.counts(), ...own))
  }
}

/** What a caller of the control API sent. */
function jsonInput(call: SimCall): unknown {
  if (call.body.length === 0) return {}
  try {
    return JSON.parse(call.body.toString('utf8'))
  } catch (cause) {
    throw new UsageError('The body is not JSON.', { cause })
  }
}

/** Checked; what was left out is not there, rather than there and undefined. */
export function parse<Output extends object>(schema: z.ZodType<Output>, call: SimCall): Given<Output> {
  const parsed = schema.safeParse(jsonInput(call))
  if (parsed.success) return given(parsed.data)
  const [first] = parsed.error.issues
  throw new UsageError(
    `${first?.path.map(String).join('.') || 'The body'}: ${first?.message ?? 'makes no sense'}`,
  )
}

export type Given<Input> = { [Key in keyof Input]: Exclude<Input[Key], undefined> }

/** Without what is undefined, which is as good as left out. */
export function given<Input extends object>(input: Input): Given<Input> {
  const entries = Object.entries(input).filter(([, value]) => value !== undefined)
  return Object.fromEntries(entries) as Given<Input>
}
