/** Makes a history that fails shorter, as long as it still fails in the same way. */
import { type Ran, type RunOptions, runHistory } from './run.ts'

export type Shrunk = { lines: string[]; failure: string; runs: number }

export type ShrinkOptions = RunOptions & {
  /** What is not steps but chance is tried so often. */
  tries?: number
  runsMax?: number
}

const TRIES = 3
const RUNS_MAX = 400

export async function shrink(
  lines: readonly string[],
  failure: string,
  options: ShrinkOptions,
): Promise<Shrunk> {
  const { tries = TRIES, runsMax = RUNS_MAX } = options
  let shortest = { lines: [...lines], failure }
  let runs = 0
  const fails = async (candidate: readonly string[]): Promise<string | undefined> => {
    for (let n = 0; n < tries && runs < runsMax; n++) {
      runs += 1
      const { failure: found }: Ran = await runHistory(candidate, options)
      if (found !== undefined && failureKind(found) === failureKind(failure)) return found
    }
    return undefined
  }
  for (let size = Math.ceil(lines.length / 2); size >= 1 && runs < runsMax; ) {
    let isShorter = false
    for (let at = 0; at < shortest.lines.length && runs < runsMax; ) {
      const candidate = shortest.lines.toSpliced(at, size)
      const found = await fails(candidate)
      if (found === undefined) at += size
      else {
        shortest = { lines: candidate, failure: found }
        isShorter = true
      }
    }
    if (!isShorter || size > 1) size = size > 1 ? Math.ceil(size / 2) : isShorter ? 1 : 0
  }
  for (let at = 0; at < shortest.lines.length && runs < runsMax; at++) {
    const plain = shortest.lines[at]!.replace(/^\+\d+ /, '')
    if (plain === shortest.lines[at]) continue
    const candidate = shortest.lines.with(at, plain)
    const found = await fails(candidate)
    if (found !== undefined) shortest = { lines: candidate, failure: found }
  }
  return { ...shortest, runs }
}

/** The first line without what differs each time. */
function failureKind(failure: string): string {
  return failure
    .split('\n')[0]!
    .replaceAll(/[^\s:]*\d[^\s:]*|\S*\/\S*/g, '#')
    .slice(0, 60)
}
