/** Objects whose records are known beforehand: what is in them, and what must be found of them. */
import { constants, gunzipSync, gzipSync } from 'node:zlib'
import { shardId } from '../../src/apps/ingest/pipeline.ts'
import type { Random } from '../../src/base/random.ts'

export type MadeObject = {
  key: string
  /** In each of its records, and in no other. */
  word: string
  bytes: Buffer
  /** Of records that can be read, by their place. */
  titles: ReadonlyMap<number, string>
  /** The places of those that are too long until the last process comes, whose limit is another. */
  long: ReadonlySet<number>
  /** The places of those that cannot. */
  bad: ReadonlySet<number>
  /** It ends too early, and some of its records cannot be had. */
  isBroken: boolean
  /** How many records can be had of it, good and bad ones. */
  readable: number
}

export const RECORDS_MAX = 40
const BAD_SHARE = 0.08
const BROKEN_SHARE = 0.12
const LONG_SHARE = 0.05
/** Of one record, before and at the end. */
export const LONG_BYTES = 1_500

const wordOf = (n: number): string => `version${String(n).padStart(6, '0')}`

/** One version of the object under this key; `n` makes it another than all others. */
export function makeObject(random: Random, key: string, n: number): MadeObject {
  const titles = new Map<number, string>()
  const bad = new Set<number>()
  const long = new Set<number>()
  const lines: string[] = []
  const count = Math.floor(random() ** 2 * RECORDS_MAX) + (random() < 0.05 ? 0 : 1)
  for (let at = 0; at < count; at++) {
    if (random() < BAD_SHARE) {
      bad.add(at)
      lines.push(`{"m": this is no JSON ${n} ${at}`)
    } else {
      const title = `${key} ${wordOf(n)} record ${at}`
      titles.set(at, title)
      const isLong = random() < LONG_SHARE
      if (isLong) long.add(at)
      lines.push(
        JSON.stringify({ m: title, filler: `${random()}`.repeat(5).padEnd(isLong ? LONG_BYTES : 0, '.') }),
      )
    }
  }
  const text = lines.map((line) => `${line}\n`).join('')
  const made = { key, word: wordOf(n), titles, bad, long }
  if (!key.endsWith('.gz')) return { ...made, bytes: Buffer.from(text), isBroken: false, readable: count }
  const whole = gzipSync(text)
  const isBroken = count > 3 && random() < BROKEN_SHARE
  const cut = Math.floor(whole.length * (0.3 + random() * 0.5))
  if (!isBroken) return { ...made, bytes: whole, isBroken, readable: count }
  const bytes = whole.subarray(0, cut)
  const readable =
    gunzipSync(bytes, { finishFlush: constants.Z_SYNC_FLUSH }).toString().split('\n').length - 1
  return { ...made, bytes, isBroken, readable }
}

export type KnownVersion = MadeObject & { uri: string; shard: string; pipeline: string }

export function knownVersion(made: MadeObject, of: { pipeline: string; bucket: string; etag: string }) {
  const uri = `s3://${of.bucket}/${made.key}`
  return { ...made, uri, shard: shardId(uri, of.etag), pipeline: of.pipeline } satisfies KnownVersion
}
