/** The frontier as a picture: one character for each slice, and between them up to where it is complete. */

import type { CliContext } from '../../../app/command.ts'
import { segmentsOf } from '../../../app/sources.ts'
import { formatCount } from '../../../base/format.ts'
import { isoTime } from '../../../base/moment.ts'
import { counted } from '../../../base/wording.ts'
import type { SegmentRow } from '../../../ledger/contract.ts'
import { streamOf } from '../account.ts'
import { watermarkOf } from '../watermark.ts'
import { withMailArchive } from './context.ts'

/** More slices than this are drawn several to a character, the least settled one showing. */
const LINES_MAX = 40

export async function showSlices(
  context: CliContext,
  options: { account?: string; list?: boolean },
): Promise<void> {
  const { output } = context
  await withMailArchive(context, options, async ({ ledger, mail, archives }) => {
    const all: Record<string, unknown>[] = []
    for (const { name } of archives) {
      const stream = await ledger.stream(streamOf(name))
      const { markS, asOfMs } = await watermarkOf(ledger, stream, await mail.tables.findMailbox(name))
      const asOf = markS > 0 && asOfMs !== null ? isoTime(asOfMs) : null
      const slices = await segmentsOf(ledger, stream.id)
      if (output.json)
        all.push({
          account: name,
          watermark: positionTime(markS),
          watermarkAsOf: asOf,
          slices: slices.map(toJson),
        })
      else if (options.list) listSlices(output, name, slices)
      else drawSlices(output, { name, slices, markAt: markS, asOf })
    }
    if (output.json) output.value(all)
  })
}

type Sign = '#' | '=' | '.' | '!'
const ORDER: readonly Sign[] = ['#', '!', '=', '.']

export function sliceSign(slice: Pick<SegmentRow, 'state' | 'listed' | 'bad'>): Sign {
  if (slice.state === 'settled') return slice.bad > 0 ? '!' : '#'
  return slice.state === 'sealed' || slice.listed > 0 ? '=' : '.'
}

export function picture(slices: readonly SegmentRow[], markAt: number, width: number): string[] {
  const per = Math.max(1, Math.ceil(slices.length / (width * LINES_MAX)))
  const cells: string[] = []
  for (let at = 0; at < slices.length; at += per) {
    const group = slices.slice(at, at + per)
    if (at > 0 && group[0]!.from_at === markAt) cells.push('|')
    cells.push(
      group
        .map(sliceSign)
        .reduce((worst, sign) => (ORDER.indexOf(sign) > ORDER.indexOf(worst) ? sign : worst)),
    )
    if (group.slice(1).some(({ from_at }) => from_at === markAt)) cells.push('|')
  }
  if (slices.length > 0 && slices.at(-1)!.to_at === markAt) cells.push('|')
  const lines: string[] = []
  for (let at = 0; at < cells.length; at += width) lines.push(cells.slice(at, at + width).join(''))
  return lines
}

function drawSlices(
  output: CliContext['output'],
  {
    name,
    slices,
    markAt,
    asOf,
  }: { name: string; slices: readonly SegmentRow[]; markAt: number; asOf: string | null },
): void {
  const settled = slices.filter(({ state }) => state === 'settled').length
  const under = slices.filter((slice) => sliceSign(slice) === '=').length
  output.line(
    `${name}: ${counted(slices.length, 'slice')}: ${formatCount(settled)} settled, ${formatCount(under)} under way, ${formatCount(slices.length - settled - under)} waiting; complete up to ${positionTime(markAt) ?? 'nothing yet'}${asOf === null ? '' : `, as of ${asOf}`}`,
  )
  for (const line of picture(slices, markAt, Math.max(20, Math.min(output.width, 120) - 2)))
    output.line(`  ${line}`)
}

function listSlices(output: CliContext['output'], name: string, slices: readonly SegmentRow[]): void {
  output.listing<SegmentRow>({
    columns: [
      { title: 'account', value: () => name },
      { title: 'from', value: ({ from_at }) => positionTime(from_at) ?? 'the oldest' },
      { title: 'to', value: ({ to_at }) => positionTime(to_at) ?? '' },
      { title: 'state', value: ({ state }) => state },
      { title: 'listed', value: ({ listed }) => listed, align: 'right' },
      { title: 'stored', value: ({ stored }) => stored, align: 'right' },
      { title: 'gone', value: ({ gone }) => gone, align: 'right' },
      { title: 'skipped', value: ({ skipped }) => skipped, align: 'right' },
      { title: 'bad', value: ({ bad }) => bad, align: 'right' },
      { title: 'what', value: ({ label }) => label ?? '' },
    ],
    rows: slices,
    empty: `${name} has no slices yet. Run: tidemark mail sync`,
  })
}

function toJson({ id, from_at, to_at, state, label, listed, stored, gone, skipped, bad }: SegmentRow) {
  return {
    id,
    from: positionTime(from_at),
    to: positionTime(to_at),
    state,
    label,
    listed,
    stored,
    gone,
    skipped,
    bad,
  }
}

/** Positions are seconds; 0 is before all mail. */
function positionTime(position: number): string | null {
  return position > 0 ? new Date(position * 1000).toISOString().replace('.000Z', 'Z') : null
}
