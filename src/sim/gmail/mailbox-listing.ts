/**
 * Pages of messages, newest first. A keyset token names the last message given out, so whatever is
 * deleted or added meanwhile, nothing that stayed is missed; an offset token only counts, as services
 * with a careless paging do.
 */
import type { ListRequest, MailboxSwitches } from './mailbox-contract.ts'
import { mailboxFault } from './mailbox-fault.ts'
import type { MessageIndex } from './mailbox-index.ts'
import type { LabelBook } from './mailbox-labels.ts'
import type { StoredMessage } from './mailbox-message.ts'
import { parseSearch } from './search.ts'
import { type Match, searchPlan } from './search-match.ts'

const PAGE_DEFAULT = 100
const PAGE_MAX = 500

export type Listing = {
  index: MessageIndex
  labels: LabelBook
  address: string
  nowMs: number
  pageTokens: MailboxSwitches['pageTokens']
}

export type ListedPage = { found: StoredMessage[]; nextPageToken?: string; resultSizeEstimate: number }

/** `also` narrows further, such as to one message per thread; it is given the whole condition. */
export function listPage(
  listing: Listing,
  request: ListRequest,
  also?: (message: StoredMessage, match: Match) => boolean,
): ListedPage {
  const { sorted } = listing.index
  const { fromMs, toMs, match } = searchOf(listing, request)
  const low = listing.index.positionAt(fromMs)
  const high = listing.index.positionAt(toMs)
  const token = parseToken(request.pageToken)
  const max = Math.min(Math.max(1, Math.floor(request.maxResults || PAGE_DEFAULT)), PAGE_MAX)
  const found: StoredMessage[] = []
  let skip = token?.offset ?? 0
  let at = Math.min(high, token?.key ? listing.index.positionOf(token.key) : high) - 1
  const start = at
  for (; at >= low; at -= 1) {
    const message = sorted[at]!
    if (!match(message) || (also && !also(message, match))) continue
    if (skip > 0) {
      skip -= 1
      continue
    }
    if (found.length === max) break
    found.push(message)
  }
  const looked = Math.max(1, start - at)
  const resultSizeEstimate = roughly(
    ((token?.offset ?? 0) + found.length) * (Math.max(0, high - low) / looked),
  )
  if (at < low) return { found, resultSizeEstimate }
  return { found, nextPageToken: nextToken(listing, found, token?.offset ?? 0), resultSizeEstimate }
}

function searchOf(listing: Listing, request: ListRequest): { fromMs: number; toMs: number; match: Match } {
  const plan = searchPlan(parseSearch(request.q ?? '', listing.nowMs), listing)
  const wanted = request.labelIds ?? []
  for (const id of wanted) {
    if (!listing.labels.get(id)) throw mailboxFault('sim-invalid', `Invalid label: ${id}`)
  }
  const all =
    request.includeSpamTrash || plan.asksForSpamTrash || wanted.includes('SPAM') || wanted.includes('TRASH')
  const match: Match = (message) => {
    const { labelIds } = message
    if (!all && (labelIds.has('TRASH') || labelIds.has('SPAM'))) return false
    for (const id of wanted) if (!labelIds.has(id)) return false
    return plan.match ? plan.match(message) : true
  }
  return { fromMs: plan.fromMs, toMs: plan.toMs, match }
}

/** Never the true number by design: whoever relies on it should be found out. */
function roughly(count: number): number {
  if (count <= 0) return 0
  const step = 10 ** Math.max(0, Math.floor(Math.log10(count)) - 1)
  return Math.ceil((count * 1.03) / step) * step + 1
}

type Key = { internalMs: number; id: string }
type Token = { key?: Key; offset?: number }

function nextToken(listing: Listing, found: readonly StoredMessage[], offset: number): string {
  const last = found.at(-1)!
  const text =
    listing.pageTokens === 'offset' ? `o:${offset + found.length}` : `k:${last.internalMs}:${last.id}`
  return Buffer.from(text).toString('base64url')
}

function parseToken(token: string | undefined): Token | undefined {
  if (!token) return undefined
  const text = Buffer.from(token, 'base64url').toString('latin1')
  const key = /^k:(-?\d{1,16}):([0-9a-f]{16})$/.exec(text)
  if (key) return { key: { internalMs: Number(key[1]), id: key[2]! } }
  const offset = /^o:(\d{1,9})$/.exec(text)
  if (offset) return { offset: Number(offset[1]) }
  throw mailboxFault('sim-invalid', 'Invalid pageToken')
}
