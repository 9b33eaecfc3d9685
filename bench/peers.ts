/**
 * The peers live in `bench/node_modules`, apart from the product. They are loaded by name at run time and
 * not by a typed import, so that `tsc` passes where they were never installed; each adapter states the
 * small part of a peer's interface that it uses.
 */
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { TidemarkError } from '../src/errors.ts'

const FOLDER = fileURLToPath(new URL('.', import.meta.url))

/** Thrown where an optional peer (one that needs a compiler) is not there: reported, not fatal. */
export class PeerMissing extends TidemarkError {
  constructor(name: string, cause: unknown) {
    super(`${name} cannot be loaded: ${firstLine(cause)}`, {
      kind: 'permanent',
      cause,
      hint: 'run `npm install --prefix bench` and look at what it says',
    })
    this.name = 'PeerMissing'
  }
}

/** The peer's module namespace. `T` is the part of it that the caller relies on. */
export async function loadPeer<T>(name: string): Promise<T> {
  try {
    return (await import(name)) as T
  } catch (error) {
    throw new PeerMissing(name, error)
  }
}

/** Installs what `bench/package.json` pins, once. */
export function installPeers(say: (line: string) => void): void {
  const { dependencies } = readJson('package.json') as { dependencies: Record<string, string> }
  const stale = Object.entries(dependencies).filter(([name, version]) => installedVersion(name) !== version)
  if (stale.length === 0) return
  say(`installing the peers (${stale.map(([name]) => name).join(', ')}): npm install --prefix bench`)
  // npm's own output goes to our standard error: standard output belongs to the result.
  const result = spawnSync('npm', ['install', '--no-audit', '--no-fund', '--prefix', FOLDER], {
    cwd: FOLDER,
    stdio: ['ignore', 2, 2],
  })
  if (result.error || result.status !== 0) {
    throw new TidemarkError('the peers could not be installed', {
      kind: 'permanent',
      cause: result.error,
      hint: 'npm said why above; `npm install --prefix bench` tries again',
    })
  }
}

export function peerVersion(name: string): string {
  return installedVersion(name) ?? 'not installed'
}

function installedVersion(name: string): string | undefined {
  try {
    return (readJson(`node_modules/${name}/package.json`) as { version: string }).version
  } catch {
    // Not installed: that is the answer.
    return undefined
  }
}

function readJson(path: string): unknown {
  return JSON.parse(readFileSync(new URL(path, import.meta.url), 'utf8'))
}

function firstLine(cause: unknown): string {
  const text = cause instanceof Error ? cause.message : String(cause)
  return text.split('\n', 1)[0] ?? text
}
