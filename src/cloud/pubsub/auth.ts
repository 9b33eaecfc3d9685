/** Access to Pub/Sub: the scope that is asked for. */
import { type ServiceAccess, serviceTokens } from '../google/service-account.ts'
import type { TokenSource } from '../token-source.ts'
import type { PubsubQueueOptions } from './client.ts'

export const PUBSUB_SCOPE = 'https://www.googleapis.com/auth/pubsub'

export function pubsubTokens(
  access: ServiceAccess,
  calls: Pick<PubsubQueueOptions, 'fetch' | 'clock'> & { tokenUrl?: string },
): TokenSource {
  return serviceTokens({ access, scope: PUBSUB_SCOPE, ...calls })
}
