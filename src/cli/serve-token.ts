/**
 * The token of a server that others can reach. One that nobody has set is made once, shown once, and kept in the
 * home folder, so that a new start does not lock everyone out.
 */
import { randomBytes } from 'node:crypto'
import { link, mkdir, readFile, unlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { UsageError } from '../errors.ts'

const FILE_NAME = 'server.token'
const TOKEN_BYTES = 24
const TOKEN = /^[\x21-\x7e]{16,4096}$/

export type ServerToken = { token: string; file: string; isNew: boolean }

export async function keptToken(home: string): Promise<ServerToken> {
  const file = join(home, FILE_NAME)
  const kept = await readToken(file)
  if (kept !== undefined) return { token: kept, file, isNew: false }
  try {
    return await makeToken(home, file)
  } catch (cause) {
    throw new UsageError(`No token can be kept in ${home}: ${(cause as Error).message}.`, {
      ...{ code: 'token-unkept', cause },
      hint: 'Set server.token, or give a folder that this user may write to with --home.',
    })
  }
}

async function makeToken(home: string, file: string): Promise<ServerToken> {
  const token = randomBytes(TOKEN_BYTES).toString('base64url')
  await mkdir(home, { recursive: true, mode: 0o700 })
  const fresh = `${file}.${process.pid}`
  await writeFile(fresh, `${token}\n`, { mode: 0o600 })
  try {
    // Whole or not at all, and never over one that another process has just made.
    await link(fresh, file)
    return { token, file, isNew: true }
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code !== 'EEXIST') throw thrown
    return { token: (await readToken(file)) ?? token, file, isNew: false }
  } finally {
    await unlink(fresh)
  }
}

async function readToken(file: string): Promise<string | undefined> {
  let text: string
  try {
    text = (await readFile(file, 'utf8')).trim()
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
