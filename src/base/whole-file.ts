/** Small files that are written whole, and read if they are there. */
import { readFileSync, renameSync, writeFileSync } from 'node:fs'

/** Whole or not at all: a start may be killed at any moment. */
export function replaceFile(file: string, content: string | Uint8Array): void {
  writeFileSync(`${file}.new`, content, { mode: 0o600 })
  renameSync(`${file}.new`, file)
}

/** Undefined where there is no such file. */
export function readIfThere(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8')
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw thrown
  }
}
