/** What `tidemark search` does: asks the index as the owner, or with the eyes of another, and prints what it answers. */
import type { CliContext } from '../../../app/command.ts'
import { ProblemError } from '../../../app/problem.ts'
import type { Runtime } from '../../../app/runtime.ts'
import { OWNER } from '../../../app/user.ts'
import { systemClock } from '../../../base/clock.ts'
import { TidemarkError, UsageError } from '../../../base/errors.ts'
import { formatCount } from '../../../base/format.ts'
import { distance } from '../../../base/moment.ts'
import { plural, shellWord } from '../../../base/wording.ts'
import { PAGE_MAX, searchAs } from '../api/answers.ts'
import type { HitView, SearchAnswerView } from '../api/schemas.ts'
import { searchApp } from '../app.ts'
import { eyesOf } from '../eyes.ts'
import { NOT_ANSWERED } from '../words.ts'
import type { SearchFlags } from './search.ts'

const LIMIT_DEFAULT = 10

export async function runSearch(context: CliContext, text: string, flags: SearchFlags): Promise<void> {
  const { limit = LIMIT_DEFAULT } = flags
  if (limit > PAGE_MAX)
    throw new UsageError(`--limit is ${limit}, but at most ${PAGE_MAX} are shown at once.`)
  if (text.trim() === '' && !flags.coverage && !flags.embed) {
    throw new UsageError('What is to be found?', {
      hint: 'Say it behind the command: tidemark search budget 2026. How much can be found: tidemark search --coverage',
    })
  }
  const runtime = await open(context)
  try {
    if (flags.embed) await (await import('./embed.ts')).embedAll(context, runtime)
    else if (flags.coverage) await printCoverage(context, runtime, flags)
    else await printHits(context, { runtime, text, flags, limit })
  } catch (thrown) {
    throw asUsage(thrown)
  } finally {
    await runtime.close()
  }
}

/** What the server refuses is here a wrong argument: nobody of that name, say. */
function asUsage(thrown: unknown): unknown {
  if (!(thrown instanceof ProblemError) || thrown.problem.status >= 500) return thrown
  const { detail, code, hint } = thrown.problem
  return new UsageError(detail, { cause: thrown, ...(code && { code }), ...(hint && { hint }) })
}

async function open(context: CliContext): ReturnType<CliContext['openRuntime']> {
  try {
    return await context.openRuntime({ apps: [searchApp], name: 'search', create: false })
  } catch (thrown) {
    if (!(thrown instanceof TidemarkError) || thrown.code !== 'ledger-unmade') throw thrown
    throw new UsageError('Nothing is kept here yet.', {
      code: 'no-ledger',
      cause: thrown,
      hint: 'Connect an account first: tidemark account add --help',
    })
  }
}

type Asked = { runtime: Runtime; text: string; flags: SearchFlags; limit: number }

async function printHits(context: CliContext, { runtime, text, flags, limit }: Asked): Promise<void> {
  const { output } = context
  const { as, source, type, sort = 'relevance', by, cursor } = flags
  const answer = await searchAs({ ...runtime, clock: systemClock }, OWNER, {
    text,
    mode: by ?? 'auto',
    sort,
    limit,
    cursor,
    filters: { ...(source && { source }), ...(type && { type }) },
    facets: output.json,
    as,
    signal: new AbortController().signal,
  })
  if (output.json) {
    output.value(answer)
    return
  }
  for (const hit of answer.hits) printHit(context, hit, flags.why === true)
  for (const note of notesOf(answer)) output.note(note)
  if (answer.next !== null) output.note(`More: ${nextCommand(text, flags, answer.next)}`)
}

function printHit({ output }: CliContext, hit: HitView, isExplained: boolean): void {
  const plain = (marked: HitView['title']): string => marked.map((part) => part.text).join('')
  const when = hit.modifiedAtMs === null ? '' : `, ${distance(hit.modifiedAtMs, systemClock.now())}`
  output.line(`#${hit.id} ${plain(hit.title)}`)
  const place = [hit.source, ...hit.folders].join(' › ')
  const cited = hit.citation?.text ? `, ${hit.citation.text}` : ''
  output.line(`   ${hit.type} in ${place}${when}${cited}`)
  const snippet = plain(hit.snippet).replaceAll(/\s+/g, ' ').trim()
  if (snippet !== '') output.line(`   ${snippet}`)
  for (const other of hit.alsoIn) output.line(`   also in ${[...other.folders, other.title].join(' › ')}`)
  if (isExplained) for (const why of hit.why.texts) output.line(`   · ${why}`)
}

function notesOf({ total, by, fellBack, didYouMean, answered, seenAs }: SearchAnswerView): string[] {
  const found = `${formatCount(total)} ${plural(total, 'document')} found`
  const how = by.length === 0 ? '' : `, by ${by.join(' and ')}`
  return [
    `${found}${how}${seenAs === null ? '' : `, with the eyes of ${seenAs}`}.`,
    ...(total > 0 && !answered ? [NOT_ANSWERED] : []),
    ...(fellBack ? [fellBack.text] : []),
    ...(didYouMean === null ? [] : [`Did you mean: ${didYouMean}`]),
  ]
}

function nextCommand(
  text: string,
  { as, source = [], type = [], sort, by, limit }: SearchFlags,
  next: string,
): string {
  const parts = [
    'tidemark search',
    shellWord(text),
    ...(as === undefined ? [] : [`--as ${shellWord(as)}`]),
    ...source.map((one) => `--source ${shellWord(one)}`),
    ...type.map((one) => `--type ${shellWord(one)}`),
    ...(sort === undefined ? [] : [`--sort ${sort}`]),
    ...(by === undefined ? [] : [`--by ${by}`]),
    ...(limit === undefined ? [] : [`--limit ${limit}`]),
    `--cursor ${shellWord(next)}`,
  ]
  return parts.join(' ')
}

async function printCoverage({ output }: CliContext, runtime: Runtime, { as }: SearchFlags): Promise<void> {
  const { reader } = await eyesOf(runtime, OWNER, { as, what: 'coverage' })
  const index = await runtime.search.open()
  const rows = await index.coverage(reader)
  output.listing({
    columns: [
      { title: 'source', value: ({ source }) => source },
      { title: 'documents', value: ({ documents }) => formatCount(documents), align: 'right' },
      { title: 'by words', value: ({ byWords }) => formatCount(byWords), align: 'right' },
      { title: 'by meaning', value: ({ byMeaning }) => formatCount(byMeaning), align: 'right' },
      {
        title: 'by name only',
        value: ({ unread }) => unread.map(({ code, count }) => `${formatCount(count)} ${code}`).join(', '),
      },
    ],
    rows,
    json: { sources: rows, model: index.embedder?.model ?? null },
    empty: 'Nothing is in the index yet. It fills while accounts are synced.',
  })
}
