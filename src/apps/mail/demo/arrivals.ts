/** Mail that arrived since the demo began, one line each, written before it arrives: the next start has it again. */
import { appendFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { readIfThere, replaceFile } from '../../../base/whole-file.ts'

const JOURNAL_FILE = 'demo-arrivals.jsonl'

const arrivalSchema = z.object({ n: z.int().min(0), atMs: z.int() })
export type DemoArrival = z.output<typeof arrivalSchema>

export function noteArrival(path: string, arrival: DemoArrival): void {
  appendFileSync(join(path, JOURNAL_FILE), `${JSON.stringify(arrival)}\n`, { mode: 0o600 })
}

/** A line that was cut off by a kill is none: its mail had not arrived. */
export function readArrivals(path: string): DemoArrival[] {
  const file = join(path, JOURNAL_FILE)
  const text = readIfThere(file)
  if (text === undefined) return []
  const arrivals: DemoArrival[] = []
  for (const line of text.split('\n')) {
    const parsed = arrivalSchema.safeParse(parseJson(line))
    if (!parsed.success || parsed.data.n !== arrivals.length) break
    arrivals.push(parsed.data)
  }
  const whole = arrivals.map((arrival) => `${JSON.stringify(arrival)}\n`).join('')
  if (whole !== text) replaceFile(file, whole)
  return arrivals
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
