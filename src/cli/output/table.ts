/**
 * Tables: aligned and cut to the width of a terminal, tab-separated and whole elsewhere, so that
 * `cut` and `grep` see everything. Values are escaped in both.
 */
import { escapeControl } from './escape.ts'
import { textWidth, truncate } from './text-width.ts'

export type Column<Row> = {
  title: string
  value: (row: Row) => string | number | undefined
  align?: 'left' | 'right'
}

export type TableInput<Row> = { columns: readonly Column<Row>[]; rows: readonly Row[] }

const GAP = '  '

/** Narrower than this a column says nothing; a table that still does not fit is wider than the terminal. */
const COLUMN_WIDTH_MIN = 8

/** Lines for a terminal of this many columns. */
export function alignedTable<Row>(input: TableInput<Row> & { width: number }): string[] {
  const titles = input.columns.map(({ title }) => title.toUpperCase())
  const cells = [titles, ...cellsOf(input)]
  const natural = titles.map((_, column) => Math.max(...cells.map((row) => textWidth(row[column] ?? ''))))
  const widths = fitWidths(natural, input.width - GAP.length * (titles.length - 1))
  return cells.map((row) =>
    row
      .map((cell, column) =>
        pad(truncate(cell, widths[column]!), widths[column]!, input.columns[column]?.align),
      )
      .join(GAP)
      .trimEnd(),
  )
}

/** Lines for a file or another program. */
export function plainTable<Row>(input: TableInput<Row>): string[] {
  const titles = input.columns.map(({ title }) => title.toUpperCase())
  return [titles, ...cellsOf(input)].map((row) => row.join('\t'))
}

function cellsOf<Row>({ columns, rows }: TableInput<Row>): string[][] {
  return rows.map((row) => columns.map(({ value }) => escapeControl(String(value(row) ?? ''))))
}

/** Takes from the widest column until the line fits. */
function fitWidths(natural: readonly number[], width: number): number[] {
  const widths = [...natural]
  let excess = widths.reduce((sum, one) => sum + one, 0) - width
  while (excess > 0) {
    const widest = Math.max(...widths)
    if (widest <= COLUMN_WIDTH_MIN) break
    const next = Math.max(COLUMN_WIDTH_MIN, ...widths.filter((one) => one < widest))
    const column = widths.indexOf(widest)
    // With equals beside it, one column at a time: they shrink in turns.
    const step = next === widest ? 1 : Math.min(excess, Math.max(1, widest - next))
    widths[column] = widest - step
    excess -= step
  }
  return widths
}

function pad(text: string, width: number, align: 'left' | 'right' = 'left'): string {
  const space = ' '.repeat(Math.max(0, width - textWidth(text)))
  return align === 'right' ? space + text : text + space
}
