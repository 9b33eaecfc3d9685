/**
 * The server's token: whoever has it may do everything. One that nobody has set is made at the first start and kept in
 * the home folder, for its owner alone; programs read it there, and it is shown nowhere.
 */
import { randomBytes } from 'node:crypto'
import { link, mkdir, open, unlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { UsageError } from '../../base/errors.ts'
import { shellWord } from '../../base/wording.ts'
import type { LoadedConfig } from '../../config/load.ts'

export const TOKEN_FILE = 'server.token'
const TOKEN_BYTES = 24
const TOKEN = /^[\x21-\x7e]{16,4096}$/

export async function serverToken({ values, home }: LoadedConfig): Promise<string> {
  return values.server.token ?? keptToken(home.path)
}

async function keptToken(home: string): Promise<string> {
  const file = join(home, TOKEN_FILE)
  const kept = await readToken(file)
  if (kept !== undefined) return kept
  try {
    return await makeToken(home, file)
  } catch (cause) {
    throw new UsageError(`No token can be kept in ${home}: ${(cause as Error).message}.`, {
      code: 'token-unkept',
      cause,
      hint: 'Set server.token, or give a folder that this user may write to with --home.',
    })
  }
}

async function makeToken(home: string, file: string): Promise<string> {
  const token = randomBytes(TOKEN_BYTES).toString('base64url')
  await mkdir(home, { recursive: true, mode: 0o700 })
  // A name that nobody has prepared, should others be able to write here.
  const fresh = `${file}.${randomBytes(6).toString('hex')}`
  await writeFile(fresh, `${token}\n`, { mode: 0o600, flag: 'wx' })
  try {
    // Whole or not at all, and never over one that another process has just made.
    await link(fresh, file)
    return token
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code !== 'EEXIST') throw thrown
    return (await readToken(file)) ?? token
  } finally {
    await unlink(fresh)
  }
}

export async function readToken(file: string): Promise<string | undefined> {
  let text: string
  try {
    await using handle = await open(file)
    checkMode(file, (await handle.stat()).mode)
    text = (await handle.readFile('utf8')).trim()
  } catch (thrown) {
    // Without its folder there is none either; making one says what is wrong with that.
    if (['ENOENT', 'ENOTDIR'].includes((thrown as NodeJS.ErrnoException).code ?? '')) return undefined
    throw thrown
  }
  if (TOKEN.test(text)) return text
  throw new UsageError(`${file} holds no token.`, {
    code: 'token-invalid',
    hint: 'Delete it, and the next start makes another; or set server.token.',
  })
}

function checkMode(file: string, mode: number): void {
  if (process.platform === 'win32' || (mode & 0o077) === 0) return
  throw new UsageError(`Others may read or change ${file}, and whoever has read it may do everything.`, {
    code: 'token-open',
    hint: `Delete it, and the next start makes another: rm ${shellWord(file)}`,
  })
}
