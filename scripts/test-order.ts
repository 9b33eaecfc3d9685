/**
 * In which order test files are run: the longest first, so that all workers end together. How long each took is kept
 * from run to run beside the packages; of a file that was never run here, its length in source has to tell.
 */
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { importsOf, scanSource } from './source-scan.ts'

/** Milliseconds by path from the root. */
export type TestTimes = Readonly<Record<string, number>>

/** Seen over all files: a character of a test takes about a millisecond, of one that starts processes twice that. */
const MS_PER_CHARACTER = { unit: 1, e2e: 2 }

export function longestFirst(
  files: readonly string[],
  input: { times: TestTimes; nameOf: (file: string) => string },
): string[] {
  const ms = new Map(files.map((file) => [file, input.times[input.nameOf(file)] ?? estimateMs(file)]))
  return [...files].sort((a, b) => ms.get(b)! - ms.get(a)!)
}

/** With the suites that it runs, which may be all there is to it. */
function estimateMs(file: string): number {
  const rate = file.endsWith('.e2e.test.ts') ? MS_PER_CHARACTER.e2e : MS_PER_CHARACTER.unit
  const read = new Set([file])
  let characters = 0
  // A set hands out what is added while it is walked.
  for (const path of read) {
    const text = readFileSync(path, 'utf8')
    characters += text.length
    for (const { specifier } of importsOf(scanSource(text)))
      if (specifier?.startsWith('.') && specifier.endsWith('.suite.ts'))
        read.add(join(dirname(path), specifier))
  }
  return characters * rate
}

/** A list that is missing or broken costs a worse order, and no more. */
export function readTimes(path: string): TestTimes {
  try {
    const times: unknown = JSON.parse(readFileSync(path, 'utf8'))
    if (typeof times !== 'object' || times === null) return {}
    return Object.fromEntries(Object.entries(times).filter(([, ms]) => typeof ms === 'number'))
  } catch {
    return {}
  }
}

/** Those of other files stay, as far as they still exist. */
export function writeTimes(
  path: string,
  input: { times: TestTimes; exists: (name: string) => boolean },
): void {
  const kept = Object.entries({ ...readTimes(path), ...input.times }).filter(([name]) => input.exists(name))
  mkdirSync(dirname(path), { recursive: true })
  const draft = `${path}.${process.pid}`
  writeFileSync(draft, JSON.stringify(Object.fromEntries(kept.sort()), null, 1))
  renameSync(draft, path)
}
