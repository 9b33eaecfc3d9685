/**
 * The Gmail API over HTTP: finds the route of a call, checks who calls and with which scope, takes the
 * price, and lets the mailbox answer. A batch goes through the same door, part by part.
 */
import type { FaultEffect } from '../fault-rules.ts'
import type { FaultPlan } from '../faults.ts'
import {
  concurrencyFault,
  delegationFault,
  faultAnswer,
  type GoogleFault,
  invalidFault,
  missingTokenFault,
  notFoundFault,
  quotaFault,
  refusalAnswer,
  scopeFault,
  thrownAnswer,
  unauthenticatedFault,
} from '../google/errors.ts'
import { parseFields } from '../google/fields.ts'
import { findRoute } from '../google/service.ts'
import { isResumption } from '../google/uploads.ts'
import type { Access, Grants } from '../grants.ts'
import type { Quota } from '../quota.ts'
import { type Operation, type Routes, type SimAnswer, type SimCall, safeDecode } from '../server.ts'
import type { Kernel } from '../service.ts'
import { bearerToken } from '../sign-in.ts'
import { accountRoutes } from './account-routes.ts'
import { type BatchPart, batchAnswer, isBatchPath, readBatch } from './batch.ts'
import { draftRoutes } from './draft-routes.ts'
import { labelRoutes } from './label-routes.ts'
import type { Mailbox } from './mailbox.ts'
import { messageRoutes } from './message-routes.ts'
import type { Push } from './push.ts'
import type { GmailUploads, Route, RouteTable } from './route.ts'
import { allows, gmailScopes } from './scopes.ts'
import { settingsRoutes } from './settings-routes.ts'
import { threadRoutes } from './thread-routes.ts'
import { isResumable, resumeRoutes } from './upload.ts'

export type GmailApiOptions = {
  kernel: Kernel
  mailboxes: ReadonlyMap<string, Mailbox>
  grants: Grants
  quota: Quota
  push: Push
  uploads: GmailUploads
  /** What a fault rule does to an account. */
  onEffect: (address: string, effect: FaultEffect) => void
  batchPartsMax: number | undefined
}

const SERVICE = 'gmail.googleapis.com'
const BATCH_PARTS_MAX = 100
/** Of a message or a thread: 64 bits in hexadecimal. */
const ITEM_ID = /^[0-9a-f]{1,16}$/i
const PREFIX = /^\/(upload\/|)gmail\/v1\/users\/([^/]+)\/(.+)$/

export const gmailRoutes: RouteTable = {
  ...accountRoutes,
  ...messageRoutes,
  ...threadRoutes,
  ...labelRoutes,
  ...draftRoutes,
  ...settingsRoutes,
}

type Matched = {
  route: Route
  ids: readonly string[]
  user: string
  isUpload: boolean
  access: Access | undefined
}

export class GmailApi implements Routes {
  readonly #options: GmailApiOptions
  readonly #delivered = new Map<string, Set<string>>()

  constructor(options: GmailApiOptions) {
    this.#options = options
  }

  match(call: SimCall): Operation | undefined {
    if (isBatchPath(call.path)) return this.#batchOperation(call)
    const matched = this.#find(call)
    if (!matched) return call.path.startsWith('/gmail/') ? unknownOperation() : undefined
    const { grants } = this.#options
    const account = matched.access?.address
    return {
      name: matched.route.name,
      account,
      isNextPage: call.query.has('pageToken'),
      admit: () => this.#admit(account),
      effect: (effect) => {
        if (account === undefined) return
        this.#options.onEffect(account, effect)
        // What has just ended is over for this call too.
        matched.access = grants.access(bearerToken(call))
      },
      refuse: refusalAnswer,
      run: (plan) => this.#answer(call, matched, plan),
    }
  }

  /** Ids whose listing has left whole. */
  delivered(address: string): Set<string> {
    let ids = this.#delivered.get(address)
    if (!ids) {
      ids = new Set()
      this.#delivered.set(address, ids)
    }
    return ids
  }

  #find(call: SimCall): Matched | undefined {
    const match = PREFIX.exec(call.path)
    if (!match) return undefined
    const found = this.#route(call, match[3]!, { isUpload: match[1] !== '' })
    if (!found) return undefined
    const user = safeDecode(match[2]!)
    const access = this.#options.grants.access(bearerToken(call))
    return { ...found, user, isUpload: match[1] !== '', access }
  }

  #route(
    call: SimCall,
    path: string,
    { isUpload }: { isUpload: boolean },
  ): { route: Route; ids: readonly string[] } | undefined {
    if (isResumption(call)) {
      return { route: resumeRoutes[path.startsWith('drafts') ? 'drafts' : 'messages'], ids: [] }
    }
    const found = findRoute(gmailRoutes, call.verb, path)
    return found && isUpload && !found.route.takesUpload ? undefined : found
  }

  #answer(call: SimCall, matched: Matched, plan: FaultPlan | undefined): SimAnswer {
    const { mailboxes, quota, push, kernel } = this.#options
    const { route, access, ids, isUpload } = matched
    const mailbox = access && mailboxes.get(access.address)
    const problem = callFault(call, matched)
    if (problem || !access || !mailbox) return faultAnswer(problem ?? unauthenticatedFault)
    const refused = quota.charge(access.address, route.name)
    if (refused) return faultAnswer(quotaFault(SERVICE, refused))
    if (route.name === 'messages.get' && kernel.faults.poisonOf(ids[0]!))
      return refusalAnswer({ status: 500 })
    try {
      const { uploads } = this.#options
      if (isResumable({ isUpload, call })) {
        return uploads.begin({ call, address: access.address, purpose: { route, ids } })
      }
      const selection = parseFields(call.query.get('fields'))
      const delivered = this.delivered(access.address)
      return route.run({
        mailbox,
        call,
        ids,
        selection,
        plan,
        isUpload,
        uploads,
        push,
        delivered,
        nowMs: kernel.clock.now(),
      })
    } catch (thrown) {
      return thrownAnswer(thrown)
    }
  }

  /** The end of the request, or why it may not begin. */
  #admit(account: string | undefined): SimAnswer | (() => void) | undefined {
    const { quota } = this.#options
    if (account === undefined || quota.settings.concurrencyMax === null) return undefined
    if (!quota.enter(account)) return faultAnswer(concurrencyFault)
    return () => quota.leave(account)
  }

  #batchOperation(call: SimCall): Operation {
    const { grants, onEffect } = this.#options
    const account = grants.access(bearerToken(call))?.address
    return {
      name: 'batch',
      account,
      admit: () => this.#admit(account),
      effect: (effect) => {
        if (account !== undefined) onEffect(account, effect)
      },
      refuse: refusalAnswer,
      run: (plan) => this.#runBatch(call, plan),
    }
  }

  #runBatch(call: SimCall, plan: FaultPlan | undefined): SimAnswer {
    if (call.verb !== 'POST') return faultAnswer(notFoundFault)
    let parts: BatchPart[]
    try {
      parts = readBatch(call, this.#options.batchPartsMax ?? BATCH_PARTS_MAX)
    } catch (thrown) {
      return thrownAnswer(thrown)
    }
    const { faults, log } = this.#options.kernel
    const matched = parts.map((part) => (isBatchPath(part.call.path) ? undefined : this.#find(part.call)))
    const isPoisoned = matched.some(
      (one) => one?.route.name === 'messages.get' && faults.poisonOf(one.ids[0]!) === 'batch',
    )
    if (isPoisoned) return refusalAnswer({ status: 500 })
    const answers = parts.map((part, at) => {
      const one = matched[at]
      const answer = one ? this.#answerPart(part.call, one) : faultAnswer(notFoundFault)
      log.notePart(one?.route.name ?? 'unknown', answer.status)
      return { contentId: part.contentId, answer }
    })
    return batchAnswer(answers, plan?.shuffle)
  }

  #answerPart(call: SimCall, matched: Matched): SimAnswer {
    const { faults } = this.#options.kernel
    if (!faults.hasPartRules) return this.#answer(call, matched, undefined)
    const { route, access } = matched
    const isNextPage = call.query.has('pageToken')
    const plan = faults.plan({
      service: 'gmail',
      method: route.name,
      account: access?.address,
      place: 'part',
      isNextPage,
    })
    if (plan?.refuse) return refusalAnswer(plan.refuse)
    if (access) for (const effect of plan?.effects ?? []) this.#options.onEffect(access.address, effect)
    return this.#answer(call, matched, plan)
  }
}

function callFault(call: SimCall, { route, ids, user, access }: Matched): GoogleFault | undefined {
  if (!access) return bearerToken(call) === '' ? missingTokenFault : unauthenticatedFault
  if (user !== 'me' && user.toLowerCase() !== access.address.toLowerCase()) return delegationFault(user)
  if (!allows(access.scopes, route.need)) return scopeFault(SERVICE)
  if (
    ids[0] !== undefined &&
    /^(?:messages|attachments|threads)\./.test(route.name) &&
    !ITEM_ID.test(ids[0])
  ) {
    return invalidFault('Invalid id value')
  }
  return metadataProblem(call, route, access)
}

/** The scope that may see headers only. */
function metadataProblem({ query }: SimCall, route: Route, access: Access): GoogleFault | undefined {
  if (route.need !== 'read' || allows(access.scopes, 'content')) return undefined
  if (!access.scopes.includes(gmailScopes.metadata)) return scopeFault(SERVICE)
  const format = (query.get('format') ?? 'full').toLowerCase()
  const isRead = route.name === 'messages.get' || route.name === 'threads.get'
  const refuse = (message: string): GoogleFault => ({ status: 403, message, reason: 'forbidden' })
  if (isRead && (format === 'raw' || format === 'full')) {
    return refuse(`Metadata scope doesn't allow format ${format.toUpperCase()}`)
  }
  return query.has('q') ? refuse("Metadata scope does not support 'q' parameter") : undefined
}

function unknownOperation(): Operation {
  return { name: 'unknown', refuse: refusalAnswer, run: () => faultAnswer(notFoundFault) }
}
