/**
 * Which mail goes to an agent. Rules are asked in their order, and the first that fits counts; mail that fits none is
 * sorted by the pipeline.
 *
 * All conditions that a rule names must hold; of several values of one condition, one is enough. Nothing here is a
 * pattern: texts are compared and searched for as they are, without case, so that no rule and no mail takes more than
 * linear time.
 */
import { z } from 'zod'
import { oneLine } from '../../../app/plain-text.ts'
import type { VisibleMessage } from '../contract.ts'
import { originalSender } from './preprocess.ts'
import { type AgentProfile, agentProfiles } from './profiles.ts'

const VALUES_MAX = 100
const text = z.string().trim().min(1).max(320)
const texts = z.union([text.transform((one) => [one]), z.array(text).min(1).max(VALUES_MAX)])

const headerName = z
  .string()
  .regex(/^[A-Za-z0-9-]{1,100}$/, 'must be the name of a header')
  .transform((name) => name.toLowerCase())

export const routeMatch = z
  .strictObject({
    all: z.literal(true).optional().describe('Every mail'),
    sender_email: texts.optional().describe('The whole address of the sender'),
    sender_domain: texts.optional().describe('Their domain, or one above it'),
    subject_contains: texts.optional().describe('A text in the subject'),
    header_match: z
      .strictObject({ name: headerName, contains: z.string().max(320).default('') })
      .optional()
      .describe('A header that is there, and the text that it contains'),
    forwarded_from: texts
      .optional()
      .describe('Who wrote it first, of forwarded mail: an address or a domain'),
  })
  .refine(
    (match) => Object.values(match).some((one) => one !== undefined),
    'a rule must say what it is about',
  )

export const routingRule = z
  .strictObject({
    name: z.string().trim().min(1).max(60),
    match: routeMatch,
    route: z.enum(['agent', 'pipeline']).default('agent'),
    /** Of the agent; none where it goes to the pipeline. */
    profile: z.string().trim().min(1).max(60).optional(),
  })
  .refine(({ route, profile }) => (route === 'agent') === (profile !== undefined), {
    message: 'a rule names a profile where it routes to an agent, and nowhere else',
    path: ['profile'],
  })
export type RoutingRule = z.output<typeof routingRule>

export const routingRules = z.array(routingRule).max(200)

/** The agents that mail can come to: what they ask costs, too. */
export function routedAgents(settings: { routing: unknown; profiles: unknown }): AgentProfile[] {
  const rules = routingRules.safeParse(settings.routing).data ?? []
  const names = new Set(rules.map(({ profile }) => profile))
  return (agentProfiles.safeParse(settings.profiles).data ?? []).filter(({ name }) => names.has(name))
}

/** A rule whose agent has no profile: mail that it fits would come to nobody. */
export function strayRule(settings: {
  routing: unknown
  profiles: unknown
}): { name: string; profile: string } | undefined {
  const rules = routingRules.safeParse(settings.routing).data ?? []
  const known = new Set((agentProfiles.safeParse(settings.profiles).data ?? []).map(({ name }) => name))
  const stray = rules.find(({ profile }) => profile !== undefined && !known.has(profile))
  return stray && { name: stray.name, profile: stray.profile! }
}

export type Routed = { route: 'pipeline' } | { route: 'agent'; profile: string; rule: string }

export function routeMessage(message: VisibleMessage, rules: readonly RoutingRule[]): Routed {
  const routable = once(message)
  return routedBy(rules.find((rule) => conditionsOf(rule, routable).every(({ holds }) => holds)))
}

/** For whoever writes rules: which one fits, and of each that was asked, why it does or does not. */
export type RouteTest = {
  route: 'pipeline' | 'agent'
  profile: string | null
  rule: string | null
  why: string[]
}

export function testRoute(message: VisibleMessage, rules: readonly RoutingRule[]): RouteTest {
  const routable = once(message)
  const why: string[] = []
  for (const rule of rules) {
    const conditions = conditionsOf(rule, routable)
    const missing = conditions.find(({ holds }) => !holds)
    const reason = missing ? missing.because : conditions.map(({ because }) => because).join(', and ')
    why.push(`${rule.name} ${missing ? 'does not fit' : 'fits'}: ${reason}.`)
    if (missing) continue
    const routed = routedBy(rule)
    const profile = routed.route === 'agent' ? routed.profile : null
    return { route: routed.route, profile, rule: rule.name, why }
  }
  why.push(rules.length === 0 ? 'There are no rules.' : 'No rule fits: it is sorted like all mail.')
  return { route: 'pipeline', profile: null, rule: null, why }
}

/** A mail that somebody describes: for the tester, which has no message at hand. */
export function describedMessage(mail: {
  from: string
  subject?: string
  headers?: readonly (readonly [name: string, value: string])[]
  text?: string
}): VisibleMessage {
  const { from, subject = '', headers = [], text: body = '' } = mail
  const address = /<([^<>]{1,320})>\s*$/.exec(from)?.[1] ?? from.trim()
  return {
    id: '',
    threadId: '',
    messageId: '',
    references: '',
    from: { name: '', address },
    replyTo: [],
    to: [],
    cc: [],
    subject,
    sentAtMs: 0,
    labelIds: [],
    text: body,
    newText: body,
    hidden: [],
    hiddenText: '',
    attachments: [],
    headers: headers.map(([name, value]) => [name.toLowerCase(), value] as const),
    isDraft: false,
    isSent: false,
  }
}

function routedBy(rule: RoutingRule | undefined): Routed {
  return rule?.route === 'agent' && rule.profile !== undefined
    ? { route: 'agent', profile: rule.profile, rule: rule.name }
    : { route: 'pipeline' }
}

type Routable = {
  message: VisibleMessage
  sender: string
  subject: string
  original: () => string | undefined
}

/** Who wrote a forwarded mail is looked for once, and only where a rule asks. */
function once(message: VisibleMessage): Routable {
  let found: { address: string | undefined } | undefined
  return {
    message,
    sender: message.from.address.toLowerCase(),
    subject: message.subject.toLowerCase(),
    original: () => {
      found ??= { address: originalSender(message)?.from.address.toLowerCase() }
      return found.address
    },
  }
}

type Condition = { holds: boolean; because: string }

/** Made one after the other by who asks: what is behind the first that does not hold is not looked at. */
function conditionsOf({ match }: RoutingRule, mail: Routable): Condition[] {
  const { all, sender_email, sender_domain, subject_contains, header_match, forwarded_from } = match
  const conditions: (() => Condition)[] = []
  if (all) conditions.push(() => ({ holds: true, because: 'it takes all mail' }))
  if (sender_email) conditions.push(() => senderIs(mail, sender_email))
  if (sender_domain) conditions.push(() => domainIs(mail, sender_domain))
  if (subject_contains) conditions.push(() => subjectHas(mail, subject_contains))
  if (header_match) conditions.push(() => headerHas(mail, header_match))
  if (forwarded_from) conditions.push(() => isForwardedFrom(mail, forwarded_from))
  const asked: Condition[] = []
  for (const condition of conditions) {
    const one = condition()
    asked.push(one)
    if (!one.holds) break
  }
  return asked
}

function senderIs({ sender }: Routable, wanted: readonly string[]): Condition {
  const holds = wanted.some((one) => one.toLowerCase() === sender)
  const because = holds
    ? `the sender is ${shown(sender)}`
    : `the sender ${shown(sender)} is not ${listed(wanted)}`
  return { holds, because }
}

function domainIs({ sender }: Routable, wanted: readonly string[]): Condition {
  const found = wanted.find((one) => isUnder(domainOf(sender), one))
  const because =
    found === undefined
      ? `the sender ${shown(sender)} is not of ${listed(wanted)}`
      : `the sender ${shown(sender)} is of ${shown(found)}`
  return { holds: found !== undefined, because }
}

function subjectHas({ subject }: Routable, wanted: readonly string[]): Condition {
  const found = wanted.find((one) => subject.includes(one.toLowerCase()))
  const because =
    found === undefined
      ? `the subject does not contain ${listed(wanted)}`
      : `the subject contains ${shown(found)}`
  return { holds: found !== undefined, because }
}

function headerHas({ message }: Routable, { name, contains }: { name: string; contains: string }): Condition {
  const values = message.headers.filter(([one]) => one === name).map(([, value]) => value.toLowerCase())
  if (values.length === 0) return { holds: false, because: `it has no header ${name}` }
  const holds = values.some((value) => value.includes(contains.toLowerCase()))
  const what = contains === '' ? '' : ` with ${shown(contains)} in it`
  return { holds, because: holds ? `it has the header ${name}${what}` : `its header ${name} is another` }
}

function isForwardedFrom({ original }: Routable, wanted: readonly string[]): Condition {
  const address = original()
  if (address === undefined) return { holds: false, because: 'it is not forwarded' }
  const found = wanted.find((one) => {
    const bare = one.replace(/^@/, '').toLowerCase()
    return bare.includes('@') ? bare === address : isUnder(domainOf(address), bare)
  })
  const because =
    found === undefined
      ? `it was first written by ${shown(address)}, not ${listed(wanted)}`
      : `it was first written by ${shown(address)}`
  return { holds: found !== undefined, because }
}

function domainOf(address: string): string {
  return address.slice(address.lastIndexOf('@') + 1)
}

function isUnder(domain: string, wanted: string): boolean {
  const bare = wanted.toLowerCase().replace(/^@/, '')
  return domain === bare || domain.endsWith(`.${bare}`)
}

/** Of mail, which may hold anything. */
function shown(value: string): string {
  return oneLine(value, 100)
}

function listed(values: readonly string[]): string {
  const first = values.slice(0, 3).map(shown).join(' or ')
  return values.length > 3 ? `${first} or one of ${values.length - 3} more` : first
}
