/**
 * An app's part of the demo: what the simulated cloud holds for it, how it is connected, what goes on happening there,
 * and how far it is. The demo itself (its folder, the cloud, the server, what is printed) is in src/cli/demo.
 */
import { appendFileSync } from 'node:fs'
import type { z } from 'zod'
import { readIfThere, replaceFile } from '../base/whole-file.ts'
import type { Sim, SimOptions } from '../sim/start.ts'
import type { CliContext } from './command.ts'
import type { Runtime } from './runtime.ts'

export type DemoPlace = {
  home: string
  /** Everything that the world is made of follows from it: the next start makes the same one. */
  seed: number
  messages: number
  /** What the world begins with is older. */
  toMs: number
  /** Of the one person in the demo, at every service. */
  address: string
  isFast: boolean
}

export type DemoCloud = DemoPlace & {
  sim: Sim
  /** Does something in the cloud as if it were then: ids follow the clock. */
  at(ms: number, run: () => void): void
}

export type AppDemo = {
  /** What the cloud is started with. */
  world(place: DemoPlace): Partial<SimOptions>
  /** Puts into the cloud what it begins with, and again what had happened before the last start ended. */
  begin(cloud: DemoCloud): DemoPart
}

export type DemoPart = {
  /** Its sections of the configuration, as TOML: the cloud may be at another port than before. */
  config: string
  /** What is to be seen, in a sentence. */
  intro(about: { isNew: boolean }): string
  /** Pages that are worth a look. */
  places: readonly (readonly [path: string, what: string])[]
  /** Connects its account, anew at every start, as if a person had done it. */
  connect(runtime: Runtime): Promise<void>
  /** Something happens in the cloud, again and again. */
  live(runtime: Runtime, stop: AbortSignal): Promise<void>
  /** Looks at the cloud once more, and, where another part shows the progress, waits until everything is settled. */
  settle(runtime: Runtime, stop: AbortSignal): Promise<void>
  summary(runtime: Runtime): Promise<DemoSummary>
  /** Shows how far it is, while it settles and afterwards; the lines of the other parts go below. */
  progress?: (
    context: CliContext,
    runtime: Runtime,
    below: () => Promise<readonly DemoLine[]>,
  ) => DemoProgress
}

export type DemoLine = { text: string; json: object }

export type DemoProgress = {
  settle(stop: AbortSignal): Promise<void>
  show(): Promise<void>
  end(): void
}

export type DemoSummary = {
  text: string
  isSettled: boolean
  hasFailed: boolean
  /** Why it waits, where it does. */
  paused: string | null
  json: object | undefined
}

/**
 * What happened in the cloud since the demo began, a numbered line each, written before it happens: the next start does
 * it again. A line that was cut off by a kill is none, because its change had not begun.
 */
export class DemoJournal<Line extends { n: number }> {
  /** What an earlier run wrote. */
  readonly before: readonly Line[]
  readonly #file: string
  #size: number

  constructor(file: string, schema: z.ZodType<Line>) {
    this.#file = file
    this.before = readLines(file, schema)
    this.#size = this.before.length
  }

  get size(): number {
    return this.#size
  }

  note(line: Line): void {
    appendFileSync(this.#file, `${JSON.stringify(line)}\n`, { mode: 0o600 })
    this.#size += 1
  }
}

function readLines<Line extends { n: number }>(file: string, schema: z.ZodType<Line>): Line[] {
  const text = readIfThere(file)
  if (text === undefined) return []
  const lines: Line[] = []
  for (const raw of text.split('\n')) {
    const parsed = schema.safeParse(parseJson(raw))
    if (!parsed.success || parsed.data.n !== lines.length) break
    lines.push(parsed.data)
  }
  const whole = lines.map((line) => `${JSON.stringify(line)}\n`).join('')
  if (whole !== text) replaceFile(file, whole)
  return lines
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
