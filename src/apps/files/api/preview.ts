/**
 * What of a file can be shown safely. Text is text, whatever it says: pages put it in as text. Pictures are told by
 * their first bytes and never by their name, and only of kinds that hold no script; HTML and SVG are text at most.
 */
import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs'
import { TidemarkError } from '../../../base/errors.ts'
import type { OneDriveClient } from '../../../cloud/onedrive/client.ts'
import { inParentFolder } from '../local/folder.ts'
import type { Root } from '../local/root.ts'
import { isAbsence } from '../local/stat.ts'

export const TEXT_BYTES_MAX = 64 * 1024
export const IMAGE_BYTES_MAX = 8 * 1024 * 1024

export type ImageType = 'image/png' | 'image/jpeg' | 'image/gif' | 'image/webp'

export type Beginning = { bytes: Buffer; size: number; modifiedMs: number | null }

/** The first bytes of a file in the folder. Undefined: no file is there. Links are not followed. */
export function beginningHere(root: Root, names: readonly string[], bytesMax: number): Beginning | undefined {
  try {
    return inParentFolder(root, names, (folder, name) => readBeginning(folder.at(name), bytesMax))
  } catch (thrown) {
    const isGone = isAbsence(thrown) || (thrown instanceof TidemarkError && thrown.code === 'folder-missing')
    if (isGone) return undefined
    throw thrown
  }
}

function readBeginning(path: string, bytesMax: number): Beginning | undefined {
  // Without waiting for a writer, should it be a pipe.
  const fd = openSync(path, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0))
  try {
    const stats = fstatSync(fd)
    if (!stats.isFile()) return undefined
    const bytes = Buffer.alloc(Math.min(bytesMax, stats.size))
    let filled = 0
    while (filled < bytes.length) {
      const read = readSync(fd, bytes, filled, bytes.length - filled, filled)
      if (read === 0) break
      filled += read
    }
    return { bytes: bytes.subarray(0, filled), size: stats.size, modifiedMs: Math.round(stats.mtimeMs) }
  } finally {
    closeSync(fd)
  }
}

/** The first bytes of a file in OneDrive; what is behind them is not fetched. */
export async function beginningThere(
  client: Pick<OneDriveClient, 'download'>,
  file: { driveId: string; itemId: string },
  { bytesMax, signal }: { bytesMax: number; signal: AbortSignal },
): Promise<Buffer> {
  const { stream } = await client.download(file.driveId, file.itemId, { signal })
  const pieces: Uint8Array[] = []
  let size = 0
  const reader = stream.getReader()
  try {
    while (size < bytesMax) {
      const { done, value } = await reader.read()
      if (done) break
      pieces.push(value)
      size += value.byteLength
    }
  } finally {
    await reader.cancel().catch(() => {})
  }
  return Buffer.concat(pieces).subarray(0, bytesMax)
}

export function imageTypeOf(bytes: Buffer): ImageType | undefined {
  const begins = (hex: string): boolean => bytes.subarray(0, hex.length / 2).toString('hex') === hex
  if (begins('89504e470d0a1a0a')) return 'image/png'
  if (begins('ffd8ff')) return 'image/jpeg'
  if (begins('474946383761') || begins('474946383961')) return 'image/gif'
  if (begins('52494646') && bytes.subarray(8, 12).toString('latin1') === 'WEBP') return 'image/webp'
  return undefined
}

/** Control characters that text has; a file with others is none. */
const NOT_TEXT = /[^\P{Cc}\t\n\r\f]/u

/** Undefined where it is not text. A character that the end cuts in two is left out. */
export function decodedText(bytes: Buffer): string | undefined {
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes, { stream: true })
    return NOT_TEXT.test(text) ? undefined : text
  } catch {
    return undefined
  }
}
