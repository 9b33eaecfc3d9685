/** What `npm run example` prints: plain lines, the same on a terminal and in a file. */
import type { Engine, NumberedEvent } from 'tidemark/engine'

type StreamStatus = Awaited<ReturnType<Engine['ledger']['streams']>>[number]

const BAR_WIDTH = 10
const MARGIN = '         '

/** How much of what has been listed so far is accounted for, per mailbox. */
export function progressLine(streams: readonly StreamStatus[], ms: number): string {
  const bars = streams.map((stream) => {
    const done = accounted(stream)
    const full = Math.floor((done / Math.max(1, stream.listed)) * BAR_WIDTH)
    return `${stream.name} [${'#'.repeat(full).padEnd(BAR_WIDTH, '.')}] ${done}/${stream.listed}`
  })
  return `${(ms / 1_000).toFixed(1).padStart(5)} s  ${bars.map((bar) => bar.padEnd(25)).join('')}`.trimEnd()
}

/** Of the engine's events, those that a person wants to see go by. */
export function eventLine(event: NumberedEvent): string | undefined {
  if (event.type === 'mark')
    return `${MARGIN}mark   ${event.stream}: every letter up to ${event.mark} is accounted for`
  if (event.type === 'bad') return `${MARGIN}bad    ${event.item}: ${event.reason}`
  if (event.type !== 'job') return undefined
  if (event.what === 'retried') return `${MARGIN}again  ${event.kind} #${event.id}: ${event.error?.message}`
  if (event.what === 'split') return `${MARGIN}split  ${event.kind} #${event.id}: ${event.error?.message}`
  return undefined
}

export type Balance = { lines: string[]; balanced: boolean }

/** The books: every letter that was listed is stored, gone, skipped or bad, and the table agrees. */
export async function balanceOf(engine: Engine): Promise<Balance> {
  const streams = await engine.ledger.streams()
  const rows = await engine.ledger.driver.read((tx) =>
    tx.get<{ n: number }>(`SELECT count(*) AS n FROM letters`),
  )
  const total = sum(streams)
  const inTable = Number(rows?.n)
  const lines = [
    'mailbox   listed = stored + gone + skipped + bad   mark',
    ...streams.map((stream) => `${equation(stream.name, stream)}   ${stream.mark ?? 'none yet'}`),
    equation('all', total),
    `rows in the table of letters: ${inTable}`,
  ]
  const balanced = total.listed === accounted(total) && total.stored === inTable
  return { lines, balanced }
}

export async function isolatedLines(engine: Engine): Promise<string[]> {
  const bad = await engine.ledger.badItems()
  return bad.map(
    ({ item, reason, tries }) => `  ${item}: ${reason} (tried alone ${tries} time${tries > 1 ? 's' : ''})`,
  )
}

type Counts = Pick<StreamStatus, 'listed' | 'stored' | 'gone' | 'skipped' | 'bad'>

function accounted({ stored, gone, skipped, bad }: Counts): number {
  return Number(stored) + Number(gone) + Number(skipped) + Number(bad)
}

function sum(streams: readonly Counts[]): Counts {
  const add = (name: keyof Counts): number => streams.reduce((n, stream) => n + Number(stream[name]), 0)
  return {
    listed: add('listed'),
    stored: add('stored'),
    gone: add('gone'),
    skipped: add('skipped'),
    bad: add('bad'),
  }
}

function equation(name: string, { listed, stored, gone, skipped, bad }: Counts): string {
  const cell = (n: number, width: number): string => String(n).padStart(width)
  return `${name.padEnd(8)}${cell(listed, 8)} = ${cell(stored, 6)} + ${cell(gone, 4)} + ${cell(skipped, 7)} + ${cell(bad, 3)}`
}
