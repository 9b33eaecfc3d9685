/**
 * Compares a stretch of the mailbox with the archive, by ids: what the cloud has and the archive lacks, what the
 * archive has and the cloud no longer, and whose labels differ. Reads only; listing costs little.
 */
import { asTidemarkError } from '../../base/errors.ts'
import type { MailAccount } from './account.ts'
import { sliceQuery, standingAlone, wantsSpamOrTrash } from './plan.ts'
import type { IdEntry } from './store/contract.ts'

/** In seconds; null is without bound. */
export type Stretch = { fromS: number | null; toS: number | null }

export type Difference = {
  /** Distinct ids that the cloud lists and the user wants. */
  listed: number
  stored: number
  missing: string[]
  /** Stored, not marked as deleted, and in neither of two listings. */
  vanished: string[]
  /** Marked as deleted, but listed. */
  returned: string[]
  relabeled: { id: string; labelIds: string[] }[]
}

type Listing = { query: string; includeSpamTrash: boolean; labelIds?: readonly string[] }

const PAGES_MAX = 20_000
/** A comparison is many calls and begins again when one fails: a hiccup is not worth that. */
const PAGE_TRIES = 4
/** The budget makes the next call wait for as long as the service asked. */
const THROTTLED_TRIES = 40
const EVERYTHING = { spam: true, trash: true, onlyLabels: [], skipLabels: [] }

export type CompareOptions = {
  /** These are compared. */
  labelIds?: readonly string[]
  /** Of the others, those that are taken as the archive has them; the rest is taken to be gone. */
  isTrusted?: (labelId: string) => boolean
  signal: AbortSignal
  onPage?: (pages: number) => void
}

export async function compareStretch(
  account: MailAccount,
  stretch: Stretch,
  options: CompareOptions,
): Promise<Difference> {
  const { choices, archive } = account
  const list = lister(account, options)
  const changes = await changesOfStored(account, stretch, options, list)
  const wanted = await list({
    query: sliceQuery(standingAlone(stretch), choices),
    includeSpamTrash: wantsSpamOrTrash(choices),
  })
  // What was imported from a file is not yet compared with the cloud: it is fetched like what is missing.
  const stored = await archive.stored([...wanted], { source: 'gmail' })
  const missing = [...wanted].filter((id) => !stored.has(id))
  return { listed: wanted.size, stored: stored.size, missing, ...changes }
}

type Changes = Pick<Difference, 'vanished' | 'returned' | 'relabeled'>

/** What became of the messages that the archive has; for that a listing less is needed. */
export async function changesOfStored(
  account: MailAccount,
  stretch: Stretch,
  options: CompareOptions,
  list = lister(account, options),
): Promise<Changes> {
  const { archive } = account
  const all = { query: sliceQuery(standingAlone(stretch), EVERYTHING), includeSpamTrash: true }
  const present = await list(all)
  const found = { absent: [] as IdEntry[], returned: [] as string[], kept: [] as IdEntry[] }
  for await (const page of archive.entries(stretchMs(stretch))) {
    for (const entry of page) {
      if (entry.source === 'import' && !present.has(entry.id)) continue
      if (entry.deletedAtMs === null && !present.has(entry.id)) found.absent.push(entry)
      if (entry.deletedAtMs !== null && present.has(entry.id)) found.returned.push(entry.id)
      if (present.has(entry.id)) found.kept.push(entry)
    }
  }
  // A message may hide while pages are turned: one listing is no proof that it is gone.
  const again = found.absent.length > 0 ? await list(all) : present
  return {
    vanished: found.absent.filter(({ id }) => !again.has(id)).map(({ id }) => id),
    returned: found.returned,
    relabeled: options.labelIds
      ? await relabeled(found.kept, { ...options, labelIds: options.labelIds }, (id) =>
          list({ ...all, labelIds: [id] }),
        )
      : [],
  }
}

type List = (listing: Listing) => Promise<Set<string>>

function lister(account: MailAccount, { signal, onPage }: CompareOptions): List {
  let pages = 0
  const count = (): void => {
    pages += 1
    onPage?.(pages)
  }
  return (listing) => listAll(account, listing, { signal, onPage: count })
}

async function relabeled(
  entries: readonly IdEntry[],
  { labelIds, isTrusted = () => false }: { labelIds: readonly string[]; isTrusted?: (id: string) => boolean },
  list: (labelId: string) => Promise<Set<string>>,
): Promise<Difference['relabeled']> {
  const labelsOf = new Map(entries.map(({ id, labelIds }) => [id, labelIds.filter(isTrusted)]))
  const before = new Map<string, Set<string>>()
  for (const { id, labelIds: labels } of entries)
    for (const label of labels) before.set(label, (before.get(label) ?? new Set()).add(id))
  for (const labelId of labelIds) {
    let ids = await list(labelId)
    // A message may hide here too: one listing is no proof that it lost its label.
    const isLost = [...(before.get(labelId) ?? [])].some((id) => !ids.has(id))
    if (isLost) ids = new Set([...ids, ...(await list(labelId))])
    for (const id of ids) labelsOf.get(id)?.push(labelId)
  }
  return entries.flatMap(({ id, labelIds: before }) => {
    const now = labelsOf.get(id)!
    return now.length === before.length && now.every((label) => before.includes(label))
      ? []
      : [{ id, labelIds: now }]
  })
}

async function listAll(
  account: MailAccount,
  listing: Listing,
  { signal, onPage }: { signal: AbortSignal; onPage: () => void },
): Promise<Set<string>> {
  const ids = new Set<string>()
  let pageToken: string | undefined
  for (let page = 0; page < PAGES_MAX; page++) {
    const answer = await tryingAgain(() => account.client.listIds({ ...listing, pageToken, signal }))
    onPage()
    for (const { id } of answer.ids) ids.add(id)
    if (!answer.nextPageToken) return ids
    pageToken = answer.nextPageToken
  }
  return ids
}

async function tryingAgain<T>(call: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await call()
    } catch (thrown) {
      const { kind } = asTidemarkError(thrown)
      const triesMax = kind === 'transient' ? PAGE_TRIES : kind === 'throttled' ? THROTTLED_TRIES : 0
      if (tries >= triesMax) throw thrown
    }
  }
}

/** Beyond any date that a message can have. */
const FAR_MS = 8.64e15

function stretchMs({ fromS, toS }: Stretch): { fromMs: number; toMs: number } {
  return { fromMs: fromS === null ? -FAR_MS : fromS * 1000, toMs: toS === null ? FAR_MS : toS * 1000 }
}
