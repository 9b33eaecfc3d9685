/**
 * Microsoft Graph over HTTP, as far as drives are concerned: finds the route of a call, checks who calls and
 * with which scope, and lets the drive answer. A batch goes through the same door, part by part.
 */
import { createHash } from 'node:crypto'
import type { FaultEffect } from '../fault-rules.ts'
import type { FaultPlan } from '../faults.ts'
import type { Access, Grants } from '../grants.ts'
import { jsonAnswer, type Operation, type Routes, type SimAnswer, type SimCall } from '../server.ts'
import type { Kernel } from '../service.ts'
import { bearerToken } from '../sign-in.ts'
import { type GraphAddress, parseAddress } from './address.ts'
import { type BatchPart, batchAnswer, isBatchPath, readBatch } from './batch.ts'
import { contentRoutes } from './content-routes.ts'
import type { CopyMonitors } from './copy-monitors.ts'
import { deltaRoutes } from './delta-route.ts'
import { faultAnswer, type GraphFault, graphFault, refusalAnswer, thrownAnswer } from './errors.ts'
import { findingRoutes } from './finding-routes.ts'
import { driveJson, isSameDrive, itemRoutes } from './item-routes.ts'
import { checkOptions } from './query-options.ts'
import type { RequestIds } from './request-ids.ts'
import { chosen, type GraphContext, type GraphRoute, type GraphRoutes } from './route.ts'
import { allows, allowsLibraries, allowsSites } from './scopes.ts'
import { guestOf } from './shares.ts'
import { linkedItem, sharingRoutes } from './sharing-routes.ts'
import type { SimDrive } from './sim-drive.ts'
import type { Subscriptions } from './subscriptions.ts'
import type { TransferUrls } from './transfer-urls.ts'
import { versionRoutes } from './version-routes.ts'

export type GraphOptions = {
  kernel: Kernel
  drives: readonly SimDrive[]
  grants: Grants
  urls: TransferUrls
  requestIds: RequestIds
  monitors: CopyMonitors
  subscriptions: Subscriptions
  onEffect: (sim: SimDrive, effect: FaultEffect) => void
  /** An answer that ends it here: the account is throttled. */
  throttle: (account: string) => SimAnswer | undefined
}

const PREFIX = '/v1.0'
/** A quirk that concerns some calls concerns every tenth. */
const QUIRK_EVERY = 10

type Matched = { route: GraphRoute; address?: GraphAddress; access: Access | undefined }

export class Graph implements Routes {
  readonly #options: GraphOptions
  readonly #routes: GraphRoutes
  readonly #calls = new WeakMap<SimDrive, number>()

  constructor(options: GraphOptions) {
    this.#options = options
    this.#routes = {
      ...itemRoutes(options.monitors),
      ...deltaRoutes,
      ...contentRoutes,
      ...versionRoutes,
      ...findingRoutes,
      ...sharingRoutes(options.drives),
    }
  }

  match(call: SimCall): Operation | undefined {
    if (!call.path.startsWith(`${PREFIX}/`)) return undefined
    const path = call.path.slice(PREFIX.length)
    if (isBatchPath(path)) return this.#batchOperation(call)
    const matched = this.#find(call, path)
    const { route, access } = matched
    const sim = this.#driveOf(matched)
    return {
      name: route.name,
      account: access?.address,
      isNextPage: call.query.has('$skiptoken') || call.query.has('token'),
      ...(route.takesChunks ? { takesChunks: true } : {}),
      ...(route.bodyBytesMax === undefined ? {} : { bodyBytesMax: route.bodyBytesMax }),
      admit: () => (access ? this.#options.throttle(access.address) : undefined),
      stall: () => (sim?.quirks.headersStall && this.#isTenth(sim) ? null : undefined),
      effect: (effect) => {
        if (!sim) return
        this.#options.onEffect(sim, effect)
        // What has just ended is over for this call, too.
        matched.access = this.#options.grants.access(bearerToken(call))
      },
      refuse: refusalAnswer,
      run: (plan) => this.#answer(call, matched, plan),
    }
  }

  #find(call: SimCall, path: string): Matched {
    const access = this.#options.grants.access(bearerToken(call))
    const address = parseAddress(path)
    if (address === 'wrong') return { route: wrongAddress, access }
    if (!address) return { route: this.#general(call, path) ?? unknownRoute, access }
    const key = `${call.verb} ${address.item ? 'item' : 'drive'}/${address.action}`
    return { route: this.#routes[key] ?? unknownRoute, address, access }
  }

  #general(call: SimCall, path: string): GraphRoute | undefined {
    const { grants, subscriptions } = this.#options
    const account = grants.access(bearerToken(call))?.address ?? ''
    switch (`${call.verb} ${path}`) {
      case 'GET /me':
        return {
          name: 'graph.me',
          need: 'read',
          run: () => jsonAnswer(chosen(userJson(account), call.query)),
        }
      case 'GET /drives':
      case 'GET /me/drives':
        return { name: 'graph.drives.list', need: 'read', run: () => this.#listDrives(call, account) }
      case 'GET /me/followedSites':
        return { name: 'graph.sites.list', need: 'read', run: () => this.#listSites(call, account) }
      default: {
        const site = /^\/sites\/([^/]+)\/drives$/.exec(path)?.[1]
        if (call.verb === 'GET' && site !== undefined) {
          const run = (): SimAnswer => this.#listLibraries(call, account, decodeURIComponent(site))
          return { name: 'graph.sites.drives', need: 'read', run }
        }
        const share = /^\/shares\/([^/]+)\/driveItem$/.exec(path)?.[1]
        if (call.verb === 'GET' && share !== undefined) {
          const run = (context: GraphContext): SimAnswer =>
            linkedItem(this.#options.drives, context, { share: decodeURIComponent(share), account })
          return { name: 'graph.shares.get', need: 'read', run }
        }
        const run = subscriptions.route(call, path, this.#drivesOf(account))
        return run && { name: run.name, need: 'read', run: run.run }
      }
    }
  }

  #answer(call: SimCall, matched: Matched, plan: FaultPlan | undefined): SimAnswer | Promise<SimAnswer> {
    const { route, access, address } = matched
    if (!access) return faultAnswer(unauthenticated(bearerToken(call) !== ''))
    if (!allows(access.scopes, route.need)) return faultAnswer(graphFault(403))
    const sim = this.#driveOf(matched)
    if (address && !sim) return faultAnswer(graphFault(404))
    const guest = sim && guestOf(sim, access.address, route.need)
    const isOwn = sim?.site === undefined && !guest
    if (!isOwn && !allowsLibraries(access.scopes)) return faultAnswer(graphFault(403))
    // The drive itself and what it has in all is for its owner.
    if (guest && !address?.item) return faultAnswer(graphFault(403))
    if (sim?.quirks.redirectWithoutLocation && this.#isTenth(sim))
      return { status: 308, headers: {}, body: '' }
    try {
      checkOptions(call.query, route.options ?? ['select'])
      return caught(route.run({ ...this.#context(call, { sim, address, plan }), guest }))
    } catch (thrown) {
      return thrownAnswer(thrown)
    }
  }

  /** Routes that concern no drive are given the first one, and leave it alone. */
  #context(
    call: SimCall,
    given: { sim: SimDrive | undefined; address: GraphAddress | undefined; plan: FaultPlan | undefined },
  ): GraphContext {
    const { urls, drives } = this.#options
    const sim = given.sim ?? drives[0]!
    const address = given.address ?? { driveId: undefined, item: undefined, action: '', argument: undefined }
    return { sim, drive: sim.state, call, address, plan: given.plan, urls }
  }

  #driveOf({ address, access }: Matched): SimDrive | undefined {
    if (!address || !access) return undefined
    const own = this.#drivesOf(access.address)
    const { driveId } = address
    return driveId === undefined
      ? own.find(({ site }) => site === undefined)
      : (own.find((sim) => isSameDrive(driveId, sim.id)) ?? this.#sharedDrive(driveId, access.address))
  }

  /** Of somebody else who has let the account in, even where that is over. */
  #sharedDrive(driveId: string, account: string): SimDrive | undefined {
    const { drives } = this.#options
    const isIn = ({ shares }: SimDrive): boolean => shares.some((share) => share.account === account)
    return drives.find((sim) => isSameDrive(driveId, sim.id) && isIn(sim))
  }

  #drivesOf(account: string): SimDrive[] {
    return this.#options.drives.filter((sim) => sim.account === account)
  }

  #listDrives({ query }: SimCall, account: string): SimAnswer {
    return drivesAnswer(
      this.#drivesOf(account).filter(({ site }) => site === undefined),
      query,
    )
  }

  #listSites(call: SimCall, account: string): SimAnswer {
    if (!this.#seesSites(call)) return faultAnswer(graphFault(403))
    const titles = new Set(this.#drivesOf(account).flatMap(({ site }) => site ?? []))
    const value = [...titles].map((title) => ({
      id: siteId(title),
      displayName: title,
      webUrl: `https://contoso.sharepoint.com/sites/${encodeURIComponent(title)}`,
    }))
    return jsonAnswer({ value })
  }

  #listLibraries(call: SimCall, account: string, id: string): SimAnswer {
    if (!this.#seesSites(call)) return faultAnswer(graphFault(403))
    const libraries = this.#drivesOf(account).filter(({ site }) => site !== undefined && siteId(site) === id)
    return libraries.length === 0 ? faultAnswer(graphFault(404)) : drivesAnswer(libraries, call.query)
  }

  #seesSites(call: SimCall): boolean {
    return allowsSites(this.#options.grants.access(bearerToken(call))?.scopes ?? [])
  }

  #isTenth(sim: SimDrive): boolean {
    const calls = (this.#calls.get(sim) ?? 0) + 1
    this.#calls.set(sim, calls)
    return calls % QUIRK_EVERY === 0
  }

  #batchOperation(call: SimCall): Operation {
    const access = this.#options.grants.access(bearerToken(call))
    return {
      name: 'graph.batch',
      account: access?.address,
      admit: () => (access ? this.#options.throttle(access.address) : undefined),
      refuse: refusalAnswer,
      run: (plan) => this.#runBatch(call, plan),
    }
  }

  async #runBatch(call: SimCall, plan: FaultPlan | undefined): Promise<SimAnswer> {
    let parts: BatchPart[]
    try {
      parts = readBatch(call, PREFIX)
    } catch (thrown) {
      return thrownAnswer(thrown)
    }
    const answers = new Map<string, SimAnswer>()
    for (const part of parts) {
      const isBlocked = part.dependsOn.some((id) => (answers.get(id)?.status ?? 424) >= 400)
      const answer = isBlocked
        ? faultAnswer(graphFault(424, { code: 'failedDependency', message: 'Failed dependency.' }))
        : await this.#answerPart(part)
      answers.set(part.id, answer)
    }
    return batchAnswer(answers, plan?.shuffle)
  }

  async #answerPart({ call }: BatchPart): Promise<SimAnswer> {
    const { kernel, onEffect, requestIds } = this.#options
    const matched = this.#find(call, call.path.slice(PREFIX.length))
    const { route, access } = matched
    const plan = kernel.faults.plan({
      service: 'onedrive',
      method: route.name,
      account: access?.address,
      place: 'part',
    })
    const sim = this.#driveOf(matched)
    if (sim) for (const effect of plan?.effects ?? []) onEffect(sim, effect)
    const answer = plan?.refuse ? refusalAnswer(plan.refuse) : await this.#answer(call, matched, plan)
    kernel.log.notePart(route.name, answer.status)
    return requestIds.stamp(answer, call)
  }
}

/** An answer that is being waited for may fail in the same ways. */
function caught(answer: SimAnswer | Promise<SimAnswer>): SimAnswer | Promise<SimAnswer> {
  return answer instanceof Promise ? answer.catch(thrownAnswer) : answer
}

const unknownRoute: GraphRoute = {
  name: 'graph.unknown',
  need: 'read',
  run: () => faultAnswer(graphFault(400, { message: 'Resource not found for the segment.' })),
}

const wrongAddress: GraphRoute = {
  name: 'graph.unknown',
  need: 'read',
  run: () => faultAnswer(graphFault(400, { message: 'The address cannot be decoded.' })),
}

function userJson(account: string): Record<string, unknown> {
  return {
    id: createHash('sha256').update(account).digest('hex').slice(0, 16),
    displayName: account.split('@')[0],
    userPrincipalName: account,
    mail: account,
  }
}

function unauthenticated(hasToken: boolean): GraphFault {
  const message = hasToken ? 'Access token has expired or is not yet valid.' : 'Access token is empty.'
  return graphFault(401, {
    message,
    headers: { 'www-authenticate': 'Bearer realm="", error="invalid_token"' },
  })
}

function drivesAnswer(drives: readonly SimDrive[], query: URLSearchParams): SimAnswer {
  return jsonAnswer({ value: drives.map((sim) => chosen(driveJson({ sim, drive: sim.state }), query)) })
}

/** As SharePoint has them: the host, and two numbers. */
function siteId(title: string): string {
  const digest = createHash('sha256').update(title).digest('hex')
  const uuid = (at: number): string =>
    [8, 4, 4, 4, 12]
      .map((size, part, sizes) => {
        const from = at + sizes.slice(0, part).reduce((sum, one) => sum + one, 0)
        return digest.slice(from, from + size)
      })
      .join('-')
  return `contoso.sharepoint.com,${uuid(0)},${uuid(32)}`
}
