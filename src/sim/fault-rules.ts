/** What a fault rule can say; also how the control API reads one. */
import { z } from 'zod'
import type { Random } from '../base/random.ts'

const count = z.number().int().min(0)
const positive = z.number().int().min(1)
const ms = z.number().min(0)
const share = z.number().min(0).max(1)

const latency = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('fixed'), ms }),
  z.strictObject({ kind: z.literal('uniform'), minMs: ms, maxMs: ms }),
  z.strictObject({ kind: z.literal('exponential'), meanMs: ms, maxMs: ms.optional() }),
  z.strictObject({
    kind: z.literal('lognormal'),
    medianMs: ms,
    sigma: z.number().min(0),
    maxMs: ms.optional(),
  }),
])

/** When a rule strikes. Without any of these it strikes at every call. */
const when = {
  /** The calls that count, such as `messages.list`, `messages.*`, `batch` or `oauth.token`; all but sign-in otherwise. */
  methods: z.array(z.string().min(1)).min(1).optional(),
  /** Only calls of this service. */
  service: z.string().optional(),
  account: z.string().optional(),
  /** Only calls about the thing with this id: a file, a folder, a shared drive. */
  target: z.string().min(1).optional(),
  /** Whole HTTP requests (the default), parts of a batch, or both. */
  on: z.enum(['request', 'part', 'any']).optional(),
  /** Only calls with a page token. */
  nextPage: z.boolean().optional(),
  /** The first calls that are left alone. */
  skip: count.optional(),
  probability: share.optional(),
  everyNth: positive.optional(),
  /** Strikes this often in a row once it begins. */
  burst: positive.optional(),
  /** Only in the first `forMs` of every `everyMs`. */
  window: z.strictObject({ everyMs: z.number().positive(), forMs: ms }).optional(),
  /** Strikes this often at most. */
  max: count.optional(),
}

const reasons = { reason: z.string().optional(), message: z.string().optional() }

const faultRule = z.discriminatedUnion('do', [
  z.strictObject({
    do: z.literal('throttle'),
    status: z.union([z.literal(403), z.literal(429), z.literal(503), z.literal(509)]).optional(),
    retryAfterSeconds: z.number().min(0).optional(),
    ...reasons,
    ...when,
  }),
  z.strictObject({
    do: z.literal('error'),
    status: z.number().int().min(400).max(599).optional(),
    ...reasons,
    ...when,
  }),
  /** `before`: the work is not done; `after`: it is, and nobody is told. */
  z.strictObject({ do: z.literal('reset'), when: z.enum(['before', 'after']).optional(), ...when }),
  /** `ms` null: for as long as the caller waits. */
  z.strictObject({
    do: z.literal('stall'),
    ms: ms.nullable().optional(),
    at: z.enum(['start', 'middle']).optional(),
    ...when,
  }),
  /** `close` false: the length is that of the shorter body, as if it were whole. */
  z.strictObject({
    do: z.literal('truncate'),
    share: share.optional(),
    close: z.boolean().optional(),
    ...when,
  }),
  z.strictObject({ do: z.literal('content-type'), type: z.string().optional(), ...when }),
  z.strictObject({ do: z.literal('latency'), latency, ...when }),
  z.strictObject({ do: z.literal('shuffle-parts'), ...when }),
  z.strictObject({ do: z.literal('empty-page'), ...when }),
  z.strictObject({
    do: z.literal('mutate'),
    what: z.enum(['arrive', 'arrive-old', 'relabel', 'delete']),
    count: positive.max(1000).optional(),
    ...when,
  }),
  z.strictObject({ do: z.literal('expire-access'), ...when }),
  z.strictObject({ do: z.literal('revoke-tokens'), ...when }),
  z.strictObject({ do: z.literal('expire-history'), ...when }),
])

const poison = z.strictObject({ id: z.string().min(1), mode: z.enum(['part', 'batch']) })

export const faultsInput = z.strictObject({
  seed: z.number().int().optional(),
  profile: z.string().optional(),
  rules: z.array(faultRule).optional(),
  poison: z.array(poison).optional(),
})

export type Latency = z.infer<typeof latency>
export type FaultRule = z.infer<typeof faultRule>
export type FaultsInput = z.infer<typeof faultsInput>
export type Poison = z.infer<typeof poison>
/** `part`: only that id's answer is an error; `batch`: every batch that contains it fails as a whole. */
export type PoisonMode = Poison['mode']
export type MutationKind = Extract<FaultRule, { do: 'mutate' }>['what']

export type FaultEffect =
  | { do: 'mutate'; what: MutationKind; count: number; random: Random }
  | { do: 'expire-access' | 'revoke-tokens' | 'expire-history' }
