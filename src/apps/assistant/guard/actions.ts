/**
 * What a model may have done, checked by code. A profile grants names of actions from a closed list; arguments are
 * parsed strictly (a field that is not known refuses the call), and each is held to what the grant covers: the threads
 * of this run, the labels of the profile, the hosts and paths of its list. What is not granted is refused with a code
 * and a sentence, which the run records and shows; nothing of a refused call has an effect.
 *
 * There is no action that forwards, deletes, adds a recipient or attaches a file, so that none can be granted; the one
 * that sends does so to addresses that the profile names, compared to the last character.
 */
import { z } from 'zod'
import { cutText } from '../../../search/extract/clean-text.ts'
import { LABELS, type LabelRole } from '../contract.ts'
import { withoutInvisible } from '../text/invisible.ts'
import { withoutSecrets } from './secrets.ts'

export type ActionGrant = {
  /** Names of ACTIONS, or of tools of a server that is configured. */
  tools: readonly string[]
  /** Those that it may apply: never `done`, `rework`, `outbox` or `needs_response`, which start work or end it. */
  labels: readonly LabelRole[]
  /** Hosts with the beginnings of paths that may be read, and those of them that may have a query. */
  http: readonly { host: string; paths: readonly string[]; queries: readonly string[] }[]
  /** Whom it may send to: exact addresses, in small letters. */
  sendTo: readonly string[]
  /** The thread of the run, and those that a search of this run has found for its owner. */
  threadIds: ReadonlySet<string>
  /** Tools of MCP servers by the names that the model is offered. */
  mcpTools: ReadonlySet<string>
}

export type Action =
  | { name: 'search_archive'; query: string }
  | { name: 'read_thread'; threadId: string }
  | { name: 'create_draft'; text: string }
  | { name: 'apply_label'; label: LabelRole }
  | { name: 'escalate'; reason: string }
  | { name: 'http_get'; url: string }
  | { name: 'send'; to: string; text: string }
  | { name: 'mcp'; tool: string; input: Record<string, unknown> }

export const ACTIONS = [
  'search_archive',
  'read_thread',
  'create_draft',
  'apply_label',
  'escalate',
  'http_get',
  'send',
] as const
export type ActionName = (typeof ACTIONS)[number]

export type RefusalCode =
  | 'unknown-action'
  | 'not-granted'
  | 'bad-arguments'
  | 'foreign-thread'
  | 'label-not-granted'
  | 'address-not-granted'
  | 'carries-secret'
  | 'recipient-not-granted'

export type ActionCheck =
  | { isAllowed: true; action: Action }
  | { isAllowed: false; code: RefusalCode; reason: string }

const QUERY_CHARS_MAX = 200
const DRAFT_CHARS_MAX = 20_000
const REASON_CHARS_MAX = 500
const URL_CHARS_MAX = 2_000
const SEGMENT_CHARS_MAX = 64
const ADDRESS_CHARS_MAX = 320
const INPUT_CHARS_MAX = 20_000

/** Labels by which a user asks for work, or says that it is done. */
const OF_USER: readonly LabelRole[] = ['needs_response', 'outbox', 'rework', 'done']

export const ACTION_ARGUMENTS = {
  search_archive: z.strictObject({ query: z.string().trim().min(1).max(QUERY_CHARS_MAX) }),
  read_thread: z.strictObject({ thread_id: z.string().regex(/^[\w-]{1,64}$/) }),
  create_draft: z.strictObject({ text: z.string().trim().min(1).max(DRAFT_CHARS_MAX) }),
  apply_label: z.strictObject({ label: z.enum(LABELS) }),
  escalate: z.strictObject({ reason: z.string().trim().min(1).max(REASON_CHARS_MAX) }),
  http_get: z.strictObject({ url: z.string().min(1).max(URL_CHARS_MAX) }),
  send: z.strictObject({
    to: z.string().min(1).max(ADDRESS_CHARS_MAX),
    text: z.string().trim().min(1).max(DRAFT_CHARS_MAX),
  }),
} as const satisfies Record<ActionName, z.ZodType>

export function checkAction(call: { name: string; input: unknown }, grant: ActionGrant): ActionCheck {
  if (grant.mcpTools.has(call.name)) return checkMcp(call)
  if (!isActionName(call.name)) return refuse('unknown-action', `there is no action ${shortly(call.name)}`)
  if (!grant.tools.includes(call.name)) {
    return refuse('not-granted', `the profile does not allow ${call.name}`)
  }
  const parsed = ACTION_ARGUMENTS[call.name].safeParse(call.input)
  if (!parsed.success) {
    const [issue] = parsed.error.issues
    return refuse('bad-arguments', `${call.name} was called wrongly: ${shortly(issue?.message ?? '')}`)
  }
  return checkGranted(call.name, parsed.data as Record<string, string>, grant)
}

function checkGranted(name: ActionName, input: Record<string, string>, grant: ActionGrant): ActionCheck {
  switch (name) {
    case 'search_archive':
      return allow({ name, query: input.query! })
    case 'read_thread':
      if (!grant.threadIds.has(input.thread_id!)) {
        return refuse('foreign-thread', 'it may read only its own thread and those that its searches found')
      }
      return allow({ name, threadId: input.thread_id! })
    case 'create_draft':
      return allow({ name, text: input.text! })
    case 'apply_label': {
      const label = input.label as LabelRole
      if (!grant.labels.includes(label) || OF_USER.includes(label)) {
        return refuse('label-not-granted', `the profile does not allow the label ${label}`)
      }
      return allow({ name, label })
    }
    case 'escalate':
      return allow({ name, reason: readable(input.reason!, REASON_CHARS_MAX) })
    case 'http_get':
      return checkAddress(input.url!, grant)
    case 'send': {
      // What is sent to is the profile's own word, not the model's: there is nothing in it to be read in two ways.
      const to = grant.sendTo.find((one) => one === input.to!.toLowerCase())
      return to === undefined
        ? refuse('recipient-not-granted', 'the profile does not name this recipient')
        : allow({ name, to, text: input.text! })
    }
  }
}

/** The address as it is requested, so that no two readers of it disagree. */
function checkAddress(text: string, grant: ActionGrant): ActionCheck {
  const url = URL.canParse(text) ? new URL(text) : undefined
  const bad = (why: string): ActionCheck =>
    refuse('address-not-granted', `it may not read this address: ${why}`)
  if (!url) return bad('it is none')
  if (url.protocol !== 'https:' || url.port !== '') return bad('only https is read')
  if (url.username !== '' || url.password !== '') return bad('it carries a name or a password')
  if (url.hash !== '') return bad('it has a fragment')
  // Escaped slashes and dots are read as paths by some servers.
  if (/%(?:2e|2f|5c|00|25)|[\\]/i.test(text) || /(?:^|\/)\.{1,2}(?:\/|$)/.test(text.split(/[?#]/, 1)[0]!)) {
    return bad('its path is disguised')
  }
  const allowance = grant.http.find(({ host }) => host.toLowerCase() === url.hostname)
  if (!allowance) return bad(`${shortly(url.hostname)} is not on the list of the profile`)
  if (!allowance.paths.some((path) => isBelow(url.pathname, path))) {
    return bad('its path is not on the list of the profile')
  }
  if (url.search !== '' && !allowance.queries.some((path) => isBelow(url.pathname, path))) {
    return bad('it has a query, which the profile does not allow')
  }
  if (url.pathname.split('/').some((segment) => segment.length > SEGMENT_CHARS_MAX)) {
    return bad('a part of its path is too long')
  }
  const said = decoded(`${url.pathname}${url.search}`)
  if (withoutSecrets(said.replace(/[/?&]/g, ' ')).text !== said.replace(/[/?&]/g, ' ')) {
    return refuse('carries-secret', 'the address would carry a secret away')
  }
  return allow({ name: 'http_get', url: url.href })
}

/** A whole path, or what is below one that ends with a slash. */
function isBelow(path: string, allowed: string): boolean {
  return path === allowed || (allowed.endsWith('/') && path.startsWith(allowed))
}

function checkMcp(call: { name: string; input: unknown }): ActionCheck {
  const parsed = z.record(z.string(), z.unknown()).safeParse(call.input ?? {})
  if (!parsed.success) return refuse('bad-arguments', `${shortly(call.name)} was called wrongly`)
  const text = JSON.stringify(parsed.data)
  if (text.length > INPUT_CHARS_MAX) {
    return refuse('bad-arguments', `${shortly(call.name)} was given more than ${INPUT_CHARS_MAX} characters`)
  }
  if (withoutSecrets(text).text !== text) {
    return refuse('carries-secret', `${shortly(call.name)} would carry a secret away`)
  }
  return allow({ name: 'mcp', tool: call.name, input: parsed.data })
}

/** What a tool found, as a model may read it: bounded, nothing invisible, no secrets. */
export function readable(text: string, charsMax: number): string {
  return withoutSecrets(cutText(withoutInvisible(text).text, charsMax)).text
}

function isActionName(name: string): name is ActionName {
  return (ACTIONS as readonly string[]).includes(name)
}

function allow(action: Action): ActionCheck {
  return { isAllowed: true, action }
}

function refuse(code: RefusalCode, reason: string): ActionCheck {
  return { isAllowed: false, code, reason }
}

function shortly(text: string): string {
  return cutText(withoutInvisible(text).text.replace(/\s+/g, ' '), 100)
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    // It says what it says.
    return text
  }
}
