/**
 * The Chromium that comes packed from npm, unpacked once for all test files and kept beside the packages. The package
 * itself unpacks into the folder for temporary files, where a file that runs at the same time finds half of it.
 */
import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'

const ROOT = join(import.meta.dirname, '..', '..')
const CACHE = join(ROOT, 'node_modules', '.cache', 'chromium')
const PACKAGE = join(ROOT, 'node_modules', '@sparticuz', 'chromium', 'package.json')
const UNPACK = `import chromium from '@sparticuz/chromium'; await chromium.executablePath()`

export async function chromiumPath(): Promise<string> {
  const { version } = JSON.parse(readFileSync(PACKAGE, 'utf8')) as { version: string }
  const folder = join(CACHE, version)
  if (!existsSync(folder)) await unpack(folder)
  return join(folder, 'chromium')
}

async function unpack(folder: string): Promise<void> {
  mkdirSync(CACHE, { recursive: true })
  const draft = mkdtempSync(join(CACHE, 'draft-'))
  try {
    const env = { ...process.env, TMPDIR: draft }
    await promisify(execFile)(process.execPath, ['--input-type=module', '-e', UNPACK], { cwd: ROOT, env })
    renameSync(draft, folder)
  } catch (error) {
    rmSync(draft, { recursive: true, force: true })
    // Another file was faster.
    if (!existsSync(folder)) throw error
  }
}
