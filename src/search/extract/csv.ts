/** Tables of text: separated by commas, semicolons, tabs or bars. */
import { CELLS_MAX, TableRows } from './table-rows.ts'
import type { TextOutput } from './text-output.ts'

const SEPARATORS = [',', ';', '\t', '|']
const SAMPLE_CHARS = 8_192

export function readCsv(bytes: Uint8Array, output: TextOutput): void {
  const text = output.decode(bytes).replace(/^\ufeff/, '')
  const rows = new TableRows(output)
  let row = 1
  for (const cells of recordsOf(text, separatorOf(text))) rows.add(row++, cells)
  rows.end()
}

function* recordsOf(text: string, separator: string): Generator<string[]> {
  const special = new RegExp(`[\\r\\n"${separator === '\t' ? '\\t' : `\\${separator}`}]`, 'g')
  let cells: string[] = []
  let cell = ''
  let from = 0
  while (from <= text.length) {
    special.lastIndex = from
    const at = special.exec(text)?.index ?? text.length
    cell += text.slice(from, at)
    const character = text[at]
    if (character === '"' && cell.trim() === '') {
      const quoted = quotedFrom(text, at + 1)
      cell = quoted.value
      from = quoted.next
      continue
    }
    from = at + 1
    if (character === '"') {
      cell += character
      continue
    }
    // One more than is taken, so that whoever counts them finds it out.
    if (cells.length <= CELLS_MAX) cells.push(cell)
    cell = ''
    if (character === separator) continue
    if (character === '\r' && text[from] === '\n') from += 1
    yield cells
    cells = []
  }
}

/** A quote that is never closed reaches to the end. */
function quotedFrom(text: string, from: number): { value: string; next: number } {
  const pieces: string[] = []
  let at = from
  for (;;) {
    const quote = text.indexOf('"', at)
    if (quote < 0) return { value: pieces.join('') + text.slice(at), next: text.length }
    pieces.push(text.slice(at, quote))
    if (text[quote + 1] !== '"') return { value: pieces.join(''), next: quote + 1 }
    pieces.push('"')
    at = quote + 2
  }
}

/** The one of which the first lines have the most, in even numbers. */
function separatorOf(text: string): string {
  const lines = text
    .slice(0, SAMPLE_CHARS)
    .replace(/"[^"]*"/g, '')
    .split(/\r\n?|\n/, 20)
  const score = (separator: string): number => {
    const counts = lines.filter((line) => line.trim() !== '').map((line) => line.split(separator).length - 1)
    const [first = 0] = counts
    return first === 0 ? 0 : counts.filter((count) => count === first).length * 100 + first
  }
  return SEPARATORS.reduce((best, one) => (score(one) > score(best) ? one : best))
}
