/**
 * An app's part of the demo: what the simulated cloud holds for it, how it is connected, what goes on happening there,
 * and how far it is. The demo itself (its folder, the cloud, the server, what is printed) is in src/cli/demo.
 */
import { appendFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { systemClock } from '../base/clock.ts'
import { readIfThere, replaceFile } from '../base/whole-file.ts'
import { accountKey, type NewAccount } from '../ledger/accounts.ts'
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

type Grant = { clientId: string; clientSecret?: string; refreshToken: string; scopes: readonly string[] }

/** Anew at every start: a cloud that was started again knows only the tokens that it gave out first. */
export async function connectDemoAccount(
  { accounts, vault }: Pick<Runtime, 'accounts' | 'vault'>,
  account: Omit<NewAccount, 'sealed'>,
  grant: Grant,
): Promise<void> {
  const secret = { kind: 'oauth', ...grant, obtainedAtMs: systemClock.now() }
  const sealed = vault.seal(accountKey(account), JSON.stringify(secret))
  const found = await accounts.find(account.service, account.name)
  if (!found) {
    await accounts.add({ ...account, sealed })
    return
  }
  await accounts.setSealed(found.id, sealed)
  await accounts.setState(found.id, 'ready')
}

/**
 * Something that happens in the cloud again and again, each time by its number. What had happened happens again now.
 * Returns how one more does; false when there were enough, so that a demo that is left alone for days does not grow
 * without end. `file`: where it is written down, of which each app has its own.
 */
export function demoSteps(
  { home, at }: DemoCloud,
  { file, max }: { file: string; max: number },
  happen: (n: number) => void,
): () => boolean {
  const journal = new DemoJournal(join(home, file), z.object({ n: z.int().min(0), atMs: z.int() }))
  for (const { n, atMs } of journal.before) at(atMs, () => happen(n))
  return () => {
    if (journal.size >= max) return false
    const step = { n: journal.size, atMs: systemClock.now() }
    journal.note(step)
    at(step.atMs, () => happen(step.n))
    return true
  }
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
