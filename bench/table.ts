/** Rows as an aligned table for a terminal, or as Markdown for `RESULTS.md`. */
import type { Row } from './bench.ts'

type Cells = readonly [string, string, string, string]

const HEAD: Cells = ['case', 'subject', 'value', 'unit']

export function textTable(rows: readonly Row[]): string {
  const lines = [HEAD, ...cells(rows)]
  const widths = HEAD.map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)))
  return lines
    .map((line) =>
      line
        .map((cell, column) => pad(cell, widths[column] ?? 0, column))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}

export function markdownTable(rows: readonly Row[]): string {
  const line = (parts: readonly string[]): string => `| ${parts.join(' | ')} |`
  return [line(HEAD), '|---|---|---:|---|', ...cells(rows).map(line)].join('\n')
}

/** Thousands are grouped; below 100 two digits after the point matter. */
export function formatValue(value: number): string {
  const fractionDigits = Math.abs(value) < 10 ? 2 : Math.abs(value) < 100 ? 1 : 0
  return value.toLocaleString('en-US', {
    minimumFractionDigits: fractionDigits,
    maximumFractionDigits: fractionDigits,
  })
}

/** A case is named once, on its first line: the eye groups what follows. */
function cells(rows: readonly Row[]): Cells[] {
  return rows.map((row, index) => [
    rows[index - 1]?.case === row.case ? '' : row.case,
    row.subject,
    formatValue(row.value),
    row.unit,
  ])
}

function pad(cell: string, width: number, column: number): string {
  return column === 2 ? cell.padStart(width) : cell.padEnd(width)
}
