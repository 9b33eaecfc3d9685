/** What the machine gives at best: the same messages only downloaded, and the same bytes only inserted. */
import { readFileSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { systemClock } from '../../src/base/clock.ts'
import { generateMailbox } from '../../src/sim/gmail/generate.ts'
import { ADDRESS, SEED, YEARS } from './gmail.ts'

const CALLS_PER_REQUEST = 50
const REQUESTS_AT_ONCE = 8
const ROWS_PER_TRANSACTION = 100
const DAY_MS = 86_400_000
const BOUNDARY = 'limit'

export type Pace = { messages: number; ms: number; bytes: number }

/** `ids`: a file with one id a line. Stores nothing, parses nothing. */
export async function downloadAll(order: {
  baseUrl: string
  accessToken: string
  ids: string
}): Promise<Pace> {
  const ids = readFileSync(order.ids, 'utf8').split('\n').filter(Boolean)
  let next = 0
  let bytes = 0
  const loop = async (): Promise<void> => {
    while (next < ids.length) {
      const group = ids.slice(next, next + CALLS_PER_REQUEST)
      next += group.length
      const got = await download(order, group)
      bytes += got
    }
  }
  const fromMs = systemClock.monotonicMs()
  await Promise.all(Array.from({ length: REQUESTS_AT_ONCE }, loop))
  return { messages: ids.length, ms: systemClock.monotonicMs() - fromMs, bytes }
}

async function download(
  { baseUrl, accessToken }: { baseUrl: string; accessToken: string },
  ids: readonly string[],
): Promise<number> {
  const parts = ids.map(
    (id) =>
      `--${BOUNDARY}\r\nContent-Type: application/http\r\nContent-ID: <${id}>\r\n\r\n` +
      `GET /gmail/v1/users/me/messages/${id}?format=raw HTTP/1.1\r\n\r\n\r\n`,
  )
  const response = await fetch(`${baseUrl}/batch/gmail/v1`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${accessToken}`,
      'content-type': `multipart/mixed; boundary=${BOUNDARY}`,
    },
    body: `${parts.join('')}--${BOUNDARY}--\r\n`,
  })
  const body = await response.arrayBuffer()
  if (!response.ok) throw new Error(`the download was answered with ${response.status}`)
  return body.byteLength
}

/** Only the inserts are timed: the bytes are made in between. */
export function insertAll(order: { file: string; messages: number }): Pace {
  const toMs = Math.floor(systemClock.now() / DAY_MS) * DAY_MS
  const mailbox = generateMailbox({
    address: ADDRESS,
    seed: SEED,
    messages: order.messages,
    now: () => systemClock.now(),
    fromMs: toMs - YEARS * 365.25 * DAY_MS,
    toMs,
  })
  const db = new DatabaseSync(order.file)
  db.exec('PRAGMA journal_mode = WAL')
  db.exec('PRAGMA synchronous = FULL')
  db.exec('CREATE TABLE messages (id TEXT PRIMARY KEY, raw BLOB NOT NULL)')
  const insert = db.prepare('INSERT INTO messages(id, raw) VALUES (?, ?)')
  let [ms, bytes, messages] = [0, 0, 0]
  let group: { id: string; raw: Uint8Array }[] = []
  const flush = (): void => {
    const fromMs = systemClock.monotonicMs()
    db.exec('BEGIN')
    for (const { id, raw } of group) insert.run(id, raw)
    db.exec('COMMIT')
    ms += systemClock.monotonicMs() - fromMs
    messages += group.length
    group = []
  }
  for (const { id } of mailbox.dump()) {
    const raw = mailbox.get(id)!.raw()
    bytes += raw.byteLength
    group.push({ id, raw })
    if (group.length >= ROWS_PER_TRANSACTION) flush()
  }
  if (group.length > 0) flush()
  db.close()
  return { messages, ms, bytes }
}
