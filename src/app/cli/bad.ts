/** `bad`: items that would not work, why, and trying them again; the same for every app. */
import { UsageError } from '../../base/errors.ts'
import { distance, isoTime } from '../../base/moment.ts'
import type { BadRow } from '../../ledger/contract.ts'
import type { CliContext } from '../command.ts'
import { badItemsOf } from '../sources.ts'
import { type SourceWords, sourceWords } from './source-words.ts'
import { runWork } from './sync.ts'
import { chosenSources, type OpenedSources, type SourcesApp, withSources } from './with-app.ts'

type Row = BadRow & { source: string }

export async function listBad(
  context: CliContext,
  app: SourcesApp,
  wanted: string | undefined,
): Promise<void> {
  const words = sourceWords(app)
  await withSources(context, app, {}, async (opened) => {
    const rows = await badRows(opened, wanted)
    const nowMs = opened.runtime.ledger.now()
    context.output.listing<Row>({
      columns: [
        { title: words.one, value: ({ source }) => source },
        { title: words.item, value: ({ item }) => item },
        { title: 'tries', value: ({ tries }) => tries, align: 'right' },
        { title: 'last tried', value: ({ last_tried }) => distance(last_tried, nowMs) },
        { title: 'reason', value: ({ reason }) => reason },
      ],
      rows,
      json: rows.map((row) => badJson(words, row)),
      empty: `No ${words.item} is bad.`,
    })
  })
}

export async function showBad(
  context: CliContext,
  app: SourcesApp,
  { id, wanted }: { id: string; wanted: string | undefined },
): Promise<void> {
  await withSources(context, app, {}, async (opened) => {
    const found = (await badRows(opened, wanted)).find(({ item }) => item === id)
    if (!found) throw notBad(app, [id])
    const row = badJson(sourceWords(app), found)
    if (context.output.json) context.output.value(row)
    else for (const [name, value] of Object.entries(row)) context.output.line(`${name.padEnd(10)} ${value}`)
  })
}

export async function retryBad(
  context: CliContext,
  app: SourcesApp,
  { ids, wanted }: { ids: readonly string[]; wanted: string | undefined },
): Promise<void> {
  await withSources(context, app, {}, async (opened) => {
    const rows = await badRows(opened, wanted)
    const some = ids.length > 0 ? rows.filter(({ item }) => ids.includes(item)) : rows
    const unknown = ids.filter((id) => !some.some(({ item }) => item === id))
    if (unknown.length > 0) throw notBad(app, unknown)
    if (some.length === 0) {
      context.output.note(`No ${sourceWords(app).item} is bad.`)
      return
    }
    await opened.runtime.ledger.retryBad({ ids: some.map(({ id }) => id) })
    await runWork(context, opened, await chosenSources(opened, wanted))
  })
}

/** Where there is no source, nothing is bad: an archive of imports, for one, needs no account. */
async function badRows(opened: OpenedSources, wanted: string | undefined): Promise<Row[]> {
  const rows: Row[] = []
  const sources = wanted === undefined ? await opened.sources.list() : await chosenSources(opened, wanted)
  for (const { name, stream } of sources) {
    const found = await badItemsOf(opened.runtime.ledger, stream)
    rows.push(...found.map((row) => ({ ...row, source: name })))
  }
  return rows
}

function notBad(app: SourcesApp, ids: readonly string[]): UsageError {
  return new UsageError(`Not among the bad ${sourceWords(app).items}: ${ids.join(', ')}.`, {
    hint: `See which are: tidemark ${app.name} bad list`,
  })
}

function badJson({ one, item }: SourceWords, row: Row): Record<string, unknown> {
  return {
    [one]: row.source,
    [item]: row.item,
    reason: row.reason,
    errorKind: row.error_kind,
    firstSeen: isoTime(row.first_seen),
    lastTried: isoTime(row.last_tried),
    tries: row.tries,
  }
}
