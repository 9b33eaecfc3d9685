/** Who calls Google's cloud services (buckets and queues): anybody with the cloud's own token, or one of the sign-in. */
import type { Grants } from '../grants.ts'
import type { SimCall } from '../server.ts'
import { bearerToken } from '../sign-in.ts'
import { type GoogleFault, missingTokenFault, scopeFault, unauthenticatedFault } from './errors.ts'

/** Never expires, and needs no sign-in. */
export const CLOUD_TOKEN = 'ya29.tidemark-sim-cloud'

export function isCloudScope(scope: string): boolean {
  return /\/auth\/(?:cloud-platform|devstorage\.|pubsub)/.test(scope)
}

/** The caller's address, or why there is none. */
export function cloudCaller(grants: Grants, call: SimCall, service: string): string | GoogleFault {
  const token = bearerToken(call)
  if (token === CLOUD_TOKEN) return 'cloud'
  if (token === '') return missingTokenFault
  const access = grants.access(token)
  if (!access) return unauthenticatedFault
  return access.scopes.some(isCloudScope) ? access.address : scopeFault(service)
}
