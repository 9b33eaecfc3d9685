/**
 * The Drive API over HTTP: finds the route of a call, checks who calls, with which scope and which parameters, takes
 * the price, and lets the world answer.
 */
import type { FaultEffect } from '../fault-rules.ts'
import type { FaultPlan, Refusal } from '../faults.ts'
import {
  faultAnswer,
  type GoogleFault,
  missingTokenFault,
  notFoundFault,
  quotaFault,
  scopeFault,
  unauthenticatedFault,
} from '../google/errors.ts'
import { findRoute } from '../google/service.ts'
import { isResumption } from '../google/uploads.ts'
import type { Grants, Access as TokenAccess } from '../grants.ts'
import type { Quota } from '../quota.ts'
import type { Operation, Routes, SimAnswer, SimCall } from '../server.ts'
import type { Kernel } from '../service.ts'
import { bearerToken } from '../sign-in.ts'
import { aboutRoutes } from './about-routes.ts'
import { changeRoutes } from './change-routes.ts'
import type { Counts } from './counts.ts'
import { driveRoutes } from './drive-routes.ts'
import { driveRefusal, forbidden, SERVICE, thrownAnswer } from './errors.ts'
import { selectionOf } from './file-json.ts'
import { fileRoutes } from './file-routes.ts'
import type { Listing } from './listing.ts'
import { permissionRoutes } from './permission-routes.ts'
import type { DriveUploads, Route, RouteTable } from './route.ts'
import { allows } from './scopes.ts'
import type { DriveWorld } from './world.ts'

export type DriveApiOptions = {
  kernel: Kernel
  world: DriveWorld
  listing: Listing
  uploads: DriveUploads
  counts: Counts
  grants: Grants
  quota: Quota
  /** What is refused to everybody, by the id of the file or of the shared drive. */
  refusals: ReadonlyMap<string, StandingRefusal>
  onEffect: (address: string, effect: FaultEffect) => void
}

/** `methods`: the calls that it is about; all of them otherwise. */
export type StandingRefusal = Refusal & { methods?: readonly string[] }

const PREFIX = /^\/(upload\/|)drive\/v3\/(.+)$/
const COMMON_PARAMETERS = [
  '$.xgafv',
  'access_token',
  'alt',
  'callback',
  'fields',
  'key',
  'oauth_token',
  'prettyPrint',
  'quotaUser',
  'upload_id',
  'upload_protocol',
  'uploadType',
  'userIp',
]

export const driveApiRoutes: RouteTable = {
  ...fileRoutes,
  ...permissionRoutes,
  ...changeRoutes,
  ...driveRoutes,
  ...aboutRoutes,
}

type Matched = { route: Route; ids: readonly string[]; isUpload: boolean; access: TokenAccess | undefined }

export class DriveApi implements Routes {
  readonly #options: DriveApiOptions

  constructor(options: DriveApiOptions) {
    this.#options = options
  }

  match(call: SimCall): Operation | undefined {
    const matched = this.#find(call)
    if (!matched) return call.path.startsWith('/drive/v3/') ? unknownOperation() : undefined
    const { grants, onEffect } = this.#options
    const account = matched.access?.address
    return {
      name: matched.route.name,
      account,
      isNextPage: call.query.has('pageToken') && matched.route.name.endsWith('.list'),
      targets: this.#targets(call, matched),
      effect: (effect) => {
        if (account === undefined) return
        onEffect(account, effect)
        // What has just ended is over for this call too.
        matched.access = grants.access(bearerToken(call))
      },
      refuse: driveRefusal,
      run: (plan) => this.#answer(call, matched, plan),
    }
  }

  #find(call: SimCall): Matched | undefined {
    const match = PREFIX.exec(call.path)
    if (!match) return undefined
    const isMedia = call.verb === 'GET' && call.query.get('alt') === 'media'
    const verb = isMedia ? 'MEDIA' : isResumption(call) ? 'PUT' : call.verb
    const found =
      findRoute(driveApiRoutes, verb, match[2]!) ?? findRoute(driveApiRoutes, call.verb, match[2]!)
    if (!found) return undefined
    const access = this.#options.grants.access(bearerToken(call))
    return { ...found, isUpload: match[1] !== '', access }
  }

  /** The file and its shared drive, or the shared drive that is listed. */
  #targets(call: SimCall, { ids }: Matched): string[] {
    const drive = call.query.get('driveId') ?? this.#options.world.items.get(ids[0] ?? '')?.driveId
    return [...ids.slice(0, 1), ...(drive === null || drive === undefined ? [] : [drive])]
  }

  #answer(call: SimCall, matched: Matched, plan: FaultPlan | undefined): SimAnswer {
    const { world, listing, uploads, counts, quota, kernel } = this.#options
    const { route, access, ids, isUpload } = matched
    const problem = callFault(call, matched)
    if (problem || !access) return faultAnswer(problem ?? unauthenticatedFault)
    const user = world.users.get(access.address)
    if (!user) return faultAnswer(forbidden('domainPolicy').fault)
    const refused = quota.charge(access.address, route.name)
    if (refused) return faultAnswer(quotaFault(SERVICE, refused))
    const standing = this.#refusal(call, matched)
    if (standing) return driveRefusal(standing)
    try {
      const selection = selectionOf(route.shape, call.query.get('fields'))
      const nowMs = kernel.clock.now()
      return route.run({ world, listing, uploads, counts, user, call, ids, selection, plan, isUpload, nowMs })
    } catch (thrown) {
      return thrownAnswer(thrown)
    }
  }

  #refusal(call: SimCall, matched: Matched): StandingRefusal | undefined {
    for (const target of this.#targets(call, matched)) {
      const refusal = this.#options.refusals.get(target)
      if (refusal && (refusal.methods?.includes(matched.route.name) ?? true)) return refusal
    }
    return undefined
  }
}

function callFault(call: SimCall, { route, access }: Matched): GoogleFault | undefined {
  if (!access) return bearerToken(call) === '' ? missingTokenFault : unauthenticatedFault
  if (!allows(access.scopes, route.need)) return scopeFault(SERVICE)
  for (const name of call.query.keys()) {
    if (COMMON_PARAMETERS.includes(name) || route.parameters.includes(name)) continue
    const message = `Invalid JSON payload received. Unknown name "${name}": Cannot bind query parameter. Field '${name}' could not be found in request message.`
    return { status: 400, message, reason: 'invalid' }
  }
  return undefined
}

function unknownOperation(): Operation {
  return { name: 'unknown', refuse: driveRefusal, run: () => faultAnswer(notFoundFault) }
}
