/**
 * Secrets at rest: texts sealed by AES-256-GCM under a key per account, which HKDF-SHA256 derives from one
 * master key. A sealed secret belongs to its account: the account's name is part of what is authenticated.
 *
 *   sealed = version (1 byte) | nonce (12) | ciphertext | tag (16)
 *
 * The master key is, in this order: TIDEMARK_MASTER_KEY, the file named by TIDEMARK_MASTER_KEY_FILE, or
 * `master.key` in the home folder. Invariants:
 * - only the last one is ever made by us, by the first `seal`: never by a look, and never over another key
 * - it appears whole or not at all, and is on disk before anything is sealed with it
 * - a key is not made where sealed secrets show that there was one (`hasSealed`, and `open` without a key)
 * - neither keys nor secrets stand in messages
 */
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto'
import {
  closeSync,
  constants,
  fstatSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readSync,
  rmSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { TidemarkError, UsageError } from './errors.ts'

export const MASTER_KEY_VARIABLE = 'TIDEMARK_MASTER_KEY'
export const MASTER_KEY_FILE_VARIABLE = 'TIDEMARK_MASTER_KEY_FILE'
export const MASTER_KEY_NAME = 'master.key'

const VERSION = 1
const KEY_BYTES = 32
const NONCE_BYTES = 12
const TAG_BYTES = 16
const KEY_FILE_BYTES_MAX = 4_096
/** Part of every derived key, so that the same master key used for something else gives other keys. */
const PURPOSE = 'tidemark vault 1'

export type VaultInput = {
  env: Readonly<Record<string, string | undefined>>
  /** Tidemark's home folder. */
  home: string
  /** Are there secrets that were sealed before? Then a missing key is an error at once. */
  hasSealed?: boolean
}

export interface Vault {
  /** Where the master key is, for people. */
  readonly where: string
  /** Whether there is a master key; false until the first `seal`. */
  readonly isMade: boolean
  seal(name: string, text: string): Uint8Array
  open(name: string, sealed: Uint8Array): string
}

type KeyPlace = { where: string; read: () => Buffer | undefined; make?: () => void }

export async function openVault(input: VaultInput): Promise<Vault> {
  const place = keyPlace(input)
  let master = place.read()
  if (!master && input.hasSealed) throw missingKey(place.where)
  const ensure = (): Buffer => {
    master ??= place.read()
    if (!master) {
      place.make?.()
      master = place.read()
    }
    if (!master) throw missingKey(place.where)
    return master
  }
  return {
    where: place.where,
    get isMade() {
      return master !== undefined
    },
    seal: (name, text) => seal(ensure(), name, text),
    open(name, sealed) {
      // Another process may have made the key since; one that opens never does.
      master ??= place.read()
      if (!master) throw missingKey(place.where)
      return unseal({ master, name, sealed, where: place.where })
    },
  }
}

function seal(master: Buffer, name: string, text: string): Uint8Array {
  const nonce = randomBytes(NONCE_BYTES)
  const cipher = createCipheriv('aes-256-gcm', keyFor(master, name), nonce, { authTagLength: TAG_BYTES })
  cipher.setAAD(associated(name))
  const body = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()])
  return new Uint8Array(Buffer.concat([Buffer.from([VERSION]), nonce, body, cipher.getAuthTag()]))
}

function unseal(input: { master: Buffer; name: string; sealed: Uint8Array; where: string }): string {
  const { master, name, sealed, where } = input
  if (sealed.length < 1 + NONCE_BYTES + TAG_BYTES) throw wrongKey(name, where)
  if (sealed[0] !== VERSION) {
    throw new TidemarkError(
      `The secret of ${name} is sealed in form ${sealed[0]}; form ${VERSION} is known.`,
      {
        kind: 'auth',
        code: 'vault-key',
        hint: 'It was written by a newer Tidemark, or is damaged. Update Tidemark, or connect the account again.',
      },
    )
  }
  const bytes = Buffer.from(sealed.buffer, sealed.byteOffset, sealed.length)
  const nonce = bytes.subarray(1, 1 + NONCE_BYTES)
  try {
    const decipher = createDecipheriv('aes-256-gcm', keyFor(master, name), nonce, {
      authTagLength: TAG_BYTES,
    })
    decipher.setAAD(associated(name))
    decipher.setAuthTag(bytes.subarray(bytes.length - TAG_BYTES))
    const body = bytes.subarray(1 + NONCE_BYTES, bytes.length - TAG_BYTES)
    return Buffer.concat([decipher.update(body), decipher.final()]).toString('utf8')
  } catch (cause) {
    throw wrongKey(name, where, cause)
  }
}

function keyFor(master: Buffer, name: string): Buffer {
  return Buffer.from(hkdfSync('sha256', master, '', `${PURPOSE}\0${name}`, KEY_BYTES))
}

function associated(name: string): Buffer {
  return Buffer.concat([Buffer.from([VERSION]), Buffer.from(name, 'utf8')])
}

function keyPlace({ env, home }: VaultInput): KeyPlace {
  const text = env[MASTER_KEY_VARIABLE]
  const file = env[MASTER_KEY_FILE_VARIABLE]
  if (text && file) {
    throw new UsageError(`Both ${MASTER_KEY_VARIABLE} and ${MASTER_KEY_FILE_VARIABLE} are set.`, {
      code: 'vault-key',
      hint: 'Keep the one that holds the key with which the secrets were sealed.',
    })
  }
  if (text) {
    const key = parseKey(text, MASTER_KEY_VARIABLE)
    return { where: MASTER_KEY_VARIABLE, read: () => key }
  }
  // A secret that an orchestrator mounts may be readable by the group of its process.
  if (file) return { where: file, read: () => readKeyFile(file, { forbidden: 0o027 }) }
  const own = join(home, MASTER_KEY_NAME)
  return {
    where: own,
    read: () => readKeyFile(own, { forbidden: 0o077 }),
    make: () => makeKeyFile(home, own),
  }
}

/** Strict: 32 bytes in base64, with or without padding, in either alphabet. */
function parseKey(text: string, where: string): Buffer {
  const plain = text.trim().replaceAll('-', '+').replaceAll('_', '/').replace(/=$/, '')
  const key = Buffer.from(plain, 'base64')
  if (/^[A-Za-z0-9+/]{43}$/.test(plain) && key.length === KEY_BYTES) return key
  throw new UsageError(`${where} does not hold a master key: it must be ${KEY_BYTES} bytes in base64.`, {
    code: 'vault-key',
    hint: 'If it was damaged, put it back from a backup. A new one, for a home without accounts: openssl rand -base64 32',
  })
}

function readKeyFile(path: string, { forbidden }: { forbidden: number }): Buffer | undefined {
  let fd: number
  try {
    fd = openSync(path, constants.O_RDONLY)
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw keyFileError(`The master key ${path} cannot be read: ${(cause as Error).message}`, cause)
  }
  try {
    const stat = fstatSync(fd)
    if (!stat.isFile()) throw keyFileError(`The master key ${path} is not a file.`)
    // Windows has no such bits: who may read a file there is up to the folder.
    if (process.platform !== 'win32' && (stat.mode & forbidden) !== 0) {
      const mode = (stat.mode & 0o777).toString(8).padStart(3, '0')
      throw keyFileError(
        `Others may read or change the master key ${path}: its mode is ${mode}.`,
        undefined,
        {
          hint: `Make it yours alone: chmod 600 ${path}. If somebody may have read it, connect the accounts again.`,
        },
      )
    }
    const buffer = Buffer.alloc(KEY_FILE_BYTES_MAX)
    const length = readSync(fd, buffer, 0, KEY_FILE_BYTES_MAX, 0)
    return parseKey(buffer.toString('utf8', 0, length), path)
  } finally {
    closeSync(fd)
  }
}

/**
 * Written beside its place and then linked to it: a crash leaves no half key, and of two processes that start
 * together the second finds the key of the first (a rename would replace it).
 */
function makeKeyFile(home: string, path: string): void {
  const draft = `${path}.${process.pid}.${randomBytes(6).toString('hex')}`
  try {
    mkdirSync(home, { recursive: true, mode: 0o700 })
    const fd = openSync(draft, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL, 0o600)
    try {
      writeSync(fd, `${randomBytes(KEY_BYTES).toString('base64')}\n`)
      fsyncSync(fd)
    } finally {
      closeSync(fd)
    }
    linkSync(draft, path)
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'EEXIST') {
      throw keyFileError(`The master key ${path} cannot be made: ${(cause as Error).message}`, cause, {
        hint: `Make the folder writable, or keep the key elsewhere and name it by ${MASTER_KEY_FILE_VARIABLE}.`,
      })
    }
  } finally {
    rmSync(draft, { force: true })
  }
  syncFolder(home)
}

/** The name itself must survive a power cut before a secret depends on it. */
function syncFolder(folder: string): void {
  if (process.platform === 'win32') return
  const fd = openSync(folder, constants.O_RDONLY)
  try {
    fsyncSync(fd)
  } finally {
    closeSync(fd)
  }
}

function keyFileError(message: string, cause?: unknown, { hint }: { hint?: string } = {}): TidemarkError {
  return new TidemarkError(message, {
    kind: 'auth',
    code: 'vault-key',
    cause,
    hint: hint ?? 'Check the path and who may read it.',
  })
}

function missingKey(where: string): TidemarkError {
  return new TidemarkError(`The master key ${where} is missing, but there are secrets sealed with it.`, {
    kind: 'auth',
    code: 'vault-key',
    hint: `Put the key back from a backup, or name it by ${MASTER_KEY_FILE_VARIABLE}. If it is lost, remove the accounts (tidemark account remove) and add them again; archives are not affected.`,
  })
}

function wrongKey(name: string, where: string, cause?: unknown): TidemarkError {
  return new TidemarkError(`The secret of ${name} cannot be opened with the master key from ${where}.`, {
    kind: 'auth',
    code: 'vault-key',
    cause,
    hint: 'It was sealed with another key, or is damaged. Put the right key back, or connect the account again: tidemark account add.',
  })
}
