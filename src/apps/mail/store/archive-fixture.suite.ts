/** Archives and messages for the tests of the archive's files. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import type { FetchedMessage } from '../message.ts'
import { openArchive } from './archive.ts'
import type { Archive, ArchiveOptions } from './contract.ts'

/** Of all times. */
export const ALL = { fromMs: Number.NEGATIVE_INFINITY, toMs: Number.POSITIVE_INFINITY }

export const NOW_MS = Date.UTC(2026, 5, 1)

export function folderFor(context: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'tidemark-archive-'))
  context.after(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

export function optionsFor(folder: string, options: Partial<ArchiveOptions> = {}): ArchiveOptions {
  return {
    folder,
    account: 'me@example.com',
    archiveId: 'archive-1',
    shardBy: 'year',
    shardBytesMax: 1_000_000_000,
    now: () => NOW_MS,
    ...options,
  }
}

/** Closed when the test ends, before its folder goes. */
export async function archiveFor(
  context: TestContext,
  options: Partial<ArchiveOptions> = {},
): Promise<Archive> {
  const folder = options.folder ?? mkdtempSync(join(tmpdir(), 'tidemark-archive-'))
  const archive = await openArchive(optionsFor(folder, options))
  context.after(async () => {
    await archive.close()
    if (options.folder === undefined) rmSync(folder, { recursive: true, force: true })
  })
  return archive
}

export function message(
  id: string,
  options: Partial<FetchedMessage> & { body?: string; headers?: string } = {},
): FetchedMessage {
  const { body = `The body of ${id}.`, headers = '', ...rest } = options
  const text = `Message-ID: <${id}@example.com>\r\nFrom: Ann <ann@example.com>\r\nTo: me@example.com\r\nSubject: About ${id}\r\n${headers}\r\n${body}\r\n`
  return {
    id,
    threadId: `thread-${id}`,
    historyId: '100',
    labelIds: ['INBOX'],
    internalMs: Date.UTC(2020, 0, 1),
    raw: Buffer.from(text),
    source: 'gmail',
    ...rest,
  }
}

/** With one attachment that is large enough to be kept apart. */
export function messageWithFile(
  id: string,
  content: Uint8Array,
  options: Partial<FetchedMessage> = {},
): FetchedMessage {
  const lines =
    Buffer.from(content)
      .toString('base64')
      .match(/.{1,76}/g) ?? []
  const headers = 'MIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary="cut"\r\n'
  const body = [
    '--cut',
    'Content-Type: text/plain; charset=utf-8',
    '',
    `See the file of ${id}.`,
    '--cut',
    'Content-Type: application/pdf; name="report.pdf"',
    'Content-Disposition: attachment; filename="report.pdf"',
    'Content-Transfer-Encoding: base64',
    '',
    ...lines,
    '--cut--',
  ].join('\r\n')
  return message(id, { headers, body, ...options })
}

/** Bytes that do not compress, the same for the same seed. */
export function noise(bytes: number, seed = 1): Uint8Array {
  const content = new Uint8Array(bytes)
  let state = seed >>> 0 || 1
  for (let index = 0; index < bytes; index++) {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    content[index] = state & 0xff
  }
  return content
}

export async function allOf<Value>(pages: AsyncIterable<readonly Value[]>): Promise<Value[]> {
  const all: Value[] = []
  for await (const page of pages) all.push(...page)
  return all
}
