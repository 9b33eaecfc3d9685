/**
 * A process that stores generated messages and says what was answered, one id per line: for tests that end it, or
 * run two of them at once. Message n is the same in every process.
 */
import { writeSync } from 'node:fs'
import type { FetchedMessage } from '../message.ts'
import { openArchive } from './archive.ts'
import { message, messageWithFile, noise, optionsFor } from './archive-fixture.suite.ts'

const BATCH = 40
/** Small, so that parts are begun all the time. */
const SHARD_BYTES_MAX = 400_000
const YEARS = 3

export type ChildArgs = {
  folder: string
  count: number
  order: 'up' | 'down'
  source: FetchedMessage['source']
  writers: number
}

export function generated(index: number, source: FetchedMessage['source'] = 'gmail'): FetchedMessage {
  const id = `m${index}`
  // Imports are off by a year now and then.
  const offsetYears = source === 'import' && index % 5 === 0 ? 1 : 0
  const internalMs = Date.UTC(2018 + (index % YEARS) + offsetYears, index % 12, 1 + (index % 28), 0, 0, index)
  const options = { internalMs, source, historyId: source === 'import' ? '0' : '100' }
  if (index % 10 === 0) return messageWithFile(id, noise(20_000, 1 + (index % 70)), options)
  const body = Buffer.from(noise(500 + ((index * 37) % 4_000), index + 1)).toString('base64')
  return message(id, { ...options, body: `words of ${id}\r\n${body}` })
}

export function childOptions(args: Pick<ChildArgs, 'folder' | 'writers'>): Parameters<typeof openArchive>[0] {
  return optionsFor(args.folder, { shardBytesMax: SHARD_BYTES_MAX, writers: args.writers })
}

async function run(args: ChildArgs): Promise<void> {
  const archive = await openArchive(childOptions(args))
  const indexes = Array.from({ length: args.count }, (_, n) => (args.order === 'up' ? n : args.count - 1 - n))
  const storing: Promise<void>[] = []
  for (let start = 0; start < indexes.length; start += BATCH) {
    await archive.room()
    const batch = indexes.slice(start, start + BATCH).map((index) => generated(index, args.source))
    const stored = archive.store(batch).then((outcomes) => {
      // At once and to the end: what is written here was answered, whatever happens next.
      writeSync(1, outcomes.map(({ id }) => `${id}\n`).join(''))
    })
    storing.push(stored)
    if (storing.length % 4 === 0) await stored
  }
  await Promise.all(storing)
  await archive.close()
}

if (process.argv[1] === import.meta.filename) await run(JSON.parse(process.argv[2]!) as ChildArgs)
