/** What every bench of the project is: `bench/<name>/index.ts` exports one `bench` of this form. */

/** One number. `subject` is `tidemark`, a peer's name (and its variant), or `limit`. */
export type Row = { case: string; subject: string; value: number; unit: string }

export type BenchOptions = {
  /** Small sizes: checks that everything runs; its numbers are not for quoting. */
  quick: boolean
  /** Only cases or subjects whose name contains one of these; all if there are none. */
  only: readonly string[]
  /** One line for a person who waits; never on standard output. */
  say(line: string): void
}

export type BenchRun = {
  rows: Row[]
  /** The conditions under which the numbers hold, one sentence each. */
  conditions: string[]
  /** Markdown: the ratios, and where the limit is. */
  explanation: string[]
  /** What could not be measured, and why. */
  failures: string[]
}

export type Bench = { title: string; run(options: BenchOptions): Promise<BenchRun> }
