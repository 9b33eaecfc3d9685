/**
 * That a file can be read does not say that it is listed: whoever knows its link, or that of a folder above it, can read
 * it. What is listed for an account is therefore looked for by its name, and what is not there cannot be found.
 */
import type { DriveClient } from '../../cloud/drive/client.ts'
import type { corpusOf } from './pages.ts'

const NAMED_PAGES_MAX = 20

export const DOMAIN_CORPUS = { driveId: undefined, inDomain: true }

/** Ids of what is listed in a corpus and called so. */
export async function listedByName(
  client: DriveClient,
  names: readonly string[],
  corpus: ReturnType<typeof corpusOf>,
  signal: AbortSignal,
): Promise<ReadonlySet<string>> {
  const ids = new Set<string>()
  let pageToken: string | undefined
  for (let pages = 0; pages < NAMED_PAGES_MAX; pages++) {
    const page = await client.list({ ...corpus, names, pageToken, signal })
    for (const { id } of page.files) ids.add(id)
    pageToken = page.nextPageToken
    if (!pageToken) break
  }
  return ids
}
