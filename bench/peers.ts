/**
 * The peers live in `bench/node_modules`, apart from the product. They are loaded by name at run time and
 * not by a typed import, so that `tsc` passes where they were never installed; each adapter states the
 * small part of a peer's interface that it uses.
 */
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { TidemarkError } from '../src/base/errors.ts'

/** What better-queue's store needs. */
const COMPILED = 'sqlite3'
const FOLDER = fileURLToPath(new URL('.', import.meta.url))

/** Thrown where a peer (such as the one that needs a compiler) is not there: reported, not fatal. */
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

/**
 * Installs what `bench/package.json` pins, once. No install script runs (see .npmrc), so that this needs no
 * compiler; the one peer that has to be compiled is built afterwards, and left out where that fails.
 */
export function installPeers(say: (line: string) => void): void {
  const { dependencies } = readJson('package.json') as { dependencies: Record<string, string> }
  const stale = Object.entries(dependencies).filter(([name, version]) => installedVersion(name) !== version)
  if (stale.length === 0) return
  say(`installing the peers (${stale.map(([name]) => name).join(', ')}): npm install --prefix bench`)
  if (!npm('install', '--no-audit', '--no-fund')) {
    throw new TidemarkError('the peers could not be installed', {
      kind: 'permanent',
      hint: 'npm said why above; `npm install --prefix bench` tries again',
    })
  }
  say(`compiling ${COMPILED}, for about two minutes`)
  if (!npm('rebuild', COMPILED, '--ignore-scripts=false'))
    say(`${COMPILED} was not compiled: going on without it`)
}

function npm(...args: string[]): boolean {
  // npm's own output goes to our standard error: standard output belongs to the result.
  const result = spawnSync('npm', [...args, '--prefix', FOLDER], { cwd: FOLDER, stdio: ['ignore', 2, 2] })
  return !result.error && result.status === 0
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
