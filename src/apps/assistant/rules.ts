/**
 * What headers and addresses say about a message before anybody reads it: whether a program sent it (RFC 3834, the
 * headers of lists and of bulk mail, addresses that nobody reads), and whether the user has shut its sender out.
 * Automated mail is never answered by a draft: two programs that answer each other do not stop.
 */
import type { Category, VisibleMessage } from './contract.ts'

export type SenderJudgement = {
  isAutomated: boolean
  /** For people, in order of weight. */
  reasons: readonly string[]
  /** Where it is certain without reading. */
  category: Category | undefined
}

const BULK = /^\s*(?:bulk|list|auto_reply|junk)\b/i
/** As a word of the local part: `no-reply+42@`, `info.noreply@`, but not `juno.replyson@`. */
const ROBOTS =
  /(?:^|[._+-])(?:no[._-]?reply|do[._-]?not[._-]?reply|donotreply|noreply|mailer-daemon|postmaster|notifications?|notify|bounces?|auto(?:mated|[._-]?reply|responder|[._-]?confirm)|nepasrepondre|ne[._-]pas[._-]repondre|no[._-]?responder|keine[._-]?antwort|nichtantworten|newsletters?|alerts?)(?:$|[._+=-])/i
const NAMES_MAX = 500

/** A header of its own says it, whatever its value. */
const TELLING: readonly (readonly [header: string, reason: string])[] = [
  ['list-id', 'it came through a mailing list'],
  ['list-unsubscribe', 'it offers to unsubscribe, as bulk mail does'],
  ['x-auto-response-suppress', 'its sender asks for no automatic answer'],
  ['feedback-id', 'it has the mark of bulk mail'],
  ['x-autoreply', 'it is an automatic answer'],
  ['x-autorespond', 'it is an automatic answer'],
  ['x-autoresponse', 'it is an automatic answer'],
]

export function judgeSender(
  mail: VisibleMessage,
  { blacklist }: { blacklist: readonly string[] },
): SenderJudgement {
  const reasons: string[] = []
  const header = (name: string): string | undefined => mail.headers.find(([one]) => one === name)?.[1]
  const shutOut = blacklist.slice(0, NAMES_MAX).find((glob) => matchesAddress(glob, mail.from.address))
  if (shutOut !== undefined) reasons.push(`the sender is on your list of senders to leave alone (${shutOut})`)
  const submitted = header('auto-submitted')
  const isAnswer = /^\s*auto-replied/i.test(submitted ?? '')
  if (submitted !== undefined && !/^\s*no\b/i.test(submitted)) {
    reasons.push(isAnswer ? 'it is an automatic answer' : 'a program sent it (Auto-Submitted)')
  }
  if (BULK.test(header('precedence') ?? '')) reasons.push('it is marked as bulk mail (Precedence)')
  for (const [name, reason] of TELLING) {
    if (header(name) !== undefined && !reasons.includes(reason)) reasons.push(reason)
  }
  // An answer to a null sender goes nowhere.
  if (/^\s*<\s*>\s*$/.test(header('return-path') ?? '')) reasons.push('it is a report of delivery')
  const local = mail.from.address.split('@')[0] ?? ''
  if (ROBOTS.test(local)) reasons.push(`nobody reads answers to ${mail.from.address}`)
  if (mail.from.address === '') reasons.push('it has no sender that could be answered')
  return {
    isAutomated: reasons.length > 0,
    reasons,
    category: shutOut !== undefined || isAnswer ? 'fyi' : undefined,
  }
}

const GLOB_CHARS_MAX = 320

/**
 * `*` for any text and `?` for one character, without case. A glob without @ is a domain and what is below it.
 * Goes back to the last star only, so that no glob and no address take more than their lengths multiplied.
 */
export function matchesAddress(glob: string, address: string): boolean {
  const pattern = glob.trim().toLowerCase().slice(0, GLOB_CHARS_MAX)
  const text = address.trim().toLowerCase().slice(0, GLOB_CHARS_MAX)
  if (pattern === '' || text === '') return false
  if (pattern.includes('@')) return matchesGlob(pattern.startsWith('@') ? `*${pattern}` : pattern, text)
  const domain = text.slice(text.lastIndexOf('@') + 1)
  return matchesGlob(pattern, domain) || matchesGlob(`*.${pattern}`, domain)
}

export function matchesGlob(glob: string, text: string): boolean {
  let [at, in_, star, mark] = [0, 0, -1, 0]
  while (in_ < text.length) {
    if (at < glob.length && glob[at] === '*') {
      star = at
      mark = in_
      at += 1
    } else if (at < glob.length && (glob[at] === '?' || glob[at] === text[in_])) {
      at += 1
      in_ += 1
    } else if (star >= 0) {
      at = star + 1
      mark += 1
      in_ = mark
    } else return false
  }
  while (glob[at] === '*') at += 1
  return at === glob.length
}
