/** Access to Cloud Storage: the scope that is asked for. Whoever only reads can be given a token that only reads. */
import { type ServiceAccess, serviceTokens } from '../google/service-account.ts'
import type { TokenSource } from '../token-source.ts'
import type { GcsStoreOptions } from './client.ts'

/** Tags and moves are written; without them a role that only reads is enough. */
export const GCS_SCOPE = 'https://www.googleapis.com/auth/devstorage.read_write'

export function gcsTokens(
  access: ServiceAccess,
  calls: Pick<GcsStoreOptions, 'fetch' | 'clock'> & { tokenUrl?: string },
): TokenSource {
  return serviceTokens({ access, scope: GCS_SCOPE, ...calls })
}
