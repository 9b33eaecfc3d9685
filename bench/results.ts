/** `RESULTS.md`: one section per bench, each replaced as a whole by that bench's next saved run. */
import { readFileSync, writeFileSync } from 'node:fs'
import type { BenchRun } from './bench.ts'
import { markdownTable } from './table.ts'

const FILE = new URL('RESULTS.md', import.meta.url)
const HEADING = '# Results of the benches\n\nThe last saved run of each: `npm run bench -- <name> --save`.\n'

export type SavedRun = {
  name: string
  title: string
  /** ISO 8601. */
  date: string
  machine: readonly string[]
  run: BenchRun
}

export function saveResults(saved: SavedRun): string {
  writeFileSync(FILE, withSection(existing(), saved.name, section(saved)))
  return 'bench/RESULTS.md'
}

/** The document with this bench's section replaced, or added at the end. */
export function withSection(document: string, name: string, text: string): string {
  const [open, close] = [`<!-- ${name} -->`, `<!-- /${name} -->`]
  const block = `${open}\n${text.trim()}\n${close}\n`
  const from = document.indexOf(open)
  const to = document.indexOf(close)
  if (from < 0 || to < from) return `${document.trimEnd()}\n\n${block}`
  return document.slice(0, from) + block + document.slice(to + close.length).replace(/^\n/, '')
}

function section({ title, date, machine, run }: SavedRun): string {
  const bullets = (lines: readonly string[]): string => lines.map((line) => `- ${line}`).join('\n')
  const parts = [`## ${title}`, `Measured ${date}.`, bullets([...machine, ...run.conditions])]
  parts.push(markdownTable(run.rows), ...run.explanation)
  if (run.failures.length > 0) parts.push('### Not measured', bullets(run.failures))
  return parts.join('\n\n')
}

function existing(): string {
  try {
    return readFileSync(FILE, 'utf8')
  } catch {
    // The first saved run starts the file.
    return HEADING
  }
}
