/** What `tidemark mail search` does: asks every archive, and merges what they answer. */

import { type CliContext, exitCodes } from '../../../app/command.ts'
import { systemClock } from '../../../base/clock.ts'
import { UsageError } from '../../../base/errors.ts'
import { formatBytes } from '../../../base/format.ts'
import { counted, shellWord } from '../../../base/wording.ts'
import { escapeControl } from '../../../cli/output/escape.ts'
import { didYouMean } from '../../../cli/output/input.ts'
import { textWidth, truncate } from '../../../cli/output/text-width.ts'
import { type AccountHit, type AccountQuery, mergePages, type Unsearched } from '../merged-search.ts'
import { formatQuery } from '../query/format.ts'
import { parseQuery } from '../query/parse.ts'
import { labelNamesIn } from '../query/query.ts'
import { withMailArchive } from './context.ts'
import { dayText, messageJson, senderText } from './message.ts'

type SearchFlags = {
  account?: string
  rank?: boolean
  limit?: number
  cursor?: string
  count?: boolean
}

export const PAGE_MAX = 500
const LIMIT_DEFAULT = 20

export async function searchMail(context: CliContext, text: string, flags: SearchFlags): Promise<void> {
  const limit = flags.limit ?? LIMIT_DEFAULT
  if (limit > PAGE_MAX) {
    throw new UsageError(`--limit is ${limit}, but at most ${PAGE_MAX} are shown at once.`, {
      hint: 'What is printed after a page names the command for the next one.',
    })
  }
  const now = systemClock.now()
  // Before anything is opened: a slip in the query is answered at once.
  parseQuery(text, { now })
  await withMailArchive(context, { account: flags.account, onlyReads: true }, async ({ archives }) => {
    const asked = archives.map((opened) => ({ opened, query: parseQuery(text, { now, me: opened.name }) }))
    if (flags.count) await printCount(context, asked)
    else await printPage(context, asked, { text, flags, limit })
  })
}

async function printCount(context: CliContext, asked: readonly AccountQuery[]): Promise<void> {
  const { output } = context
  let [messages, bytes] = [0, 0]
  const unsearched: Unsearched[] = []
  for (const { opened, query } of asked) {
    const counted = await opened.archive.count(query, { labels: opened.labels })
    messages += counted.messages
    bytes += counted.bytes
    unsearched.push(...counted.unsearched.map((one) => ({ account: opened.name, ...one })))
  }
  if (output.json) output.value({ understood: understoodOf(asked), messages, bytes, unsearched })
  else output.line(`${counted(messages, 'message')}, ${formatBytes(bytes)}`)
  noteUnsearched(context, unsearched)
  if (messages === 0) noteUnknownLabels(context, asked)
}

async function printPage(
  context: CliContext,
  asked: readonly AccountQuery[],
  { text, flags, limit }: { text: string; flags: SearchFlags; limit: number },
): Promise<void> {
  const { output } = context
  const page = await mergePages(asked, { order: flags.rank ? 'rank' : 'date', limit, cursor: flags.cursor })
  const { hits, next, unsearched } = page
  if (output.json) {
    const rows = hits.map(({ opened, message, excerpt }) => ({ ...messageJson(opened, message), excerpt }))
    output.value({ understood: understoodOf(asked), hits: rows, next, unsearched })
  } else if (output.isTerminal) printHits(context, hits, asked.length > 1)
  else printTable(context, hits)
  noteUnsearched(context, unsearched)
  if (hits.length === 0) {
    if (!output.json) output.note('No message matches.')
    noteUnknownLabels(context, asked)
  }
  if (next !== null && !output.json) output.note(`More: ${nextCommand(text, flags, next)}`)
}

/** Of each account, since `me` is another address in each. */
function understoodOf(asked: readonly AccountQuery[]): { account: string; query: string }[] {
  return asked.map(({ opened, query }) => ({ account: opened.name, query: formatQuery(query) }))
}

const BOLD = '\u001b[1m'
const PLAIN = '\u001b[0m'
const SENDER_WIDTH = 24

/** Two lines for each: who, what and its id; and where it was found, with the words in bold. */
function printHits({ output, env }: CliContext, hits: readonly AccountHit[], isMany: boolean): void {
  const [bold, plain] = env.NO_COLOR ? ['[', ']'] : [BOLD, PLAIN]
  for (const { opened, message, excerpt } of hits) {
    const sender = truncate(escapeControl(senderText(message)), SENDER_WIDTH)
    const pad = ' '.repeat(SENDER_WIDTH - textWidth(sender))
    const gone = message.deletedAtMs === null ? '' : ' (no longer in Gmail)'
    const end = `${message.id}${isMany ? ` ${opened.name}` : ''}${gone}`
    const subject = escapeControl(message.subject === '' ? '(no subject)' : message.subject)
    output.raw(`${dayText(message.internalMs)}  ${sender}${pad}  ${subject}  ${escapeControl(end)}\n`)
    const shown = excerpt
      .map(({ text, match }) => (match ? `${bold}${escapeControl(text)}${plain}` : escapeControl(text)))
      .join('')
    if (shown !== '') output.raw(`            ${shown}\n`)
  }
}

function printTable({ output }: CliContext, hits: readonly AccountHit[]): void {
  output.listing<AccountHit>({
    columns: [
      { title: 'date', value: ({ message }) => dayText(message.internalMs) },
      { title: 'account', value: ({ opened }) => opened.name },
      { title: 'id', value: ({ message }) => message.id },
      { title: 'from', value: ({ message }) => senderText(message) },
      { title: 'subject', value: ({ message }) => message.subject },
      { title: 'excerpt', value: ({ excerpt }) => excerpt.map(({ text }) => text).join('') },
    ],
    rows: hits,
  })
}

/** An answer with a part missing is not the answer: programs see it by the exit code. */
export function noteUnsearched(context: CliContext, unsearched: readonly Unsearched[]): void {
  if (unsearched.length === 0) return
  context.exitCode = exitCodes.failure
  for (const { account, shard, reason } of unsearched) {
    context.output.note(`${shard} of ${account} could not be searched: ${reason}`)
  }
  context.output.note('What is in it is missing here. See: tidemark mail verify')
}

/** Nothing found may be a slip in a label's name. */
function noteUnknownLabels({ output }: CliContext, asked: readonly AccountQuery[]): void {
  const known = asked.flatMap(({ opened }) => [...opened.labels.keys(), ...opened.labels.values()])
  const dashed = (name: string): string => name.toLowerCase().replaceAll(/[\s/]/g, '-')
  const names = new Set(known.map(dashed))
  for (const name of new Set(asked.flatMap(({ query }) => labelNamesIn(query)))) {
    if (names.has(dashed(name)) || /^[A-Z_]+$/.test(name)) continue
    output.note(`No label is called ${name}${didYouMean(name, known)}`)
  }
}

function nextCommand(text: string, flags: SearchFlags, next: string): string {
  const words = ['tidemark mail search']
  if (flags.account !== undefined) words.push(`--account ${shellWord(flags.account)}`)
  if (flags.rank) words.push('--rank')
  if (flags.limit !== undefined && flags.limit !== LIMIT_DEFAULT) words.push(`--limit ${flags.limit}`)
  words.push(`--cursor ${shellWord(next)}`, ...(text.startsWith('-') ? ['--'] : []), shellWord(text))
  return words.join(' ')
}
