/**
 * Sees to it that the pages are built. In a checkout a program of their own does that, as soon as their sources have
 * changed; a package brings them along.
 */
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'

const ROOT = join(import.meta.dirname, '..', '..', '..')
const BUILD = join(ROOT, 'scripts', 'build-web.ts')
export const WEB_FOLDER = join(ROOT, 'web', 'dist')
const OUTPUT_MAX = 10_000

/** Why it did not work, if it did not: the server is of use without its newest pages. */
export async function buildPages(): Promise<string | undefined> {
  if (!existsSync(BUILD)) return undefined
  return new Promise((resolve) => {
    const child = spawn(process.execPath, [BUILD], { cwd: ROOT, stdio: ['ignore', 'ignore', 'pipe'] })
    let said = ''
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      said = (said + text).slice(0, OUTPUT_MAX)
    })
    child.on('error', (error) => resolve(error.message))
    child.on('close', (code) => resolve(code === 0 ? undefined : reasonIn(said) || `it ended with ${code}`))
  })
}

/** One line of a long report; `npm run build` shows all of it. */
function reasonIn(said: string): string | undefined {
  const lines = stripVTControlCharacters(said)
    .split('\n')
    .map((line) => line.trim())
  return lines.find((line) => /could not|error:|there is no/i.test(line)) ?? lines.find((line) => line !== '')
}
