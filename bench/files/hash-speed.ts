/** QuickXorHash beside sha256 and crc32, of bytes in memory, in pieces as files are read. */
import { createHash } from 'node:crypto'
import { crc32 } from 'node:zlib'
import { systemClock } from '../../src/base/clock.ts'
import { QuickXorHash } from '../../src/base/quick-xor-hash.ts'

export type HashSpeeds = Record<'QuickXorHash' | 'sha256' | 'crc32', number>

const PIECE_BYTES = 1024 * 1024
const ROUNDS = 3

/** Gigabytes a second; the best of some rounds. */
export function hashSpeeds({ gigabytes }: { gigabytes: number }): HashSpeeds {
  const piece = Buffer.alloc(PIECE_BYTES, 'some bytes that are not all the same')
  const pieces = Math.round((gigabytes * 1e9) / PIECE_BYTES)
  const quick = new QuickXorHash()
  const sha = createHash('sha256')
  let crc = 0
  const ways: Record<keyof HashSpeeds, () => void> = {
    QuickXorHash: () => void quick.update(piece),
    sha256: () => void sha.update(piece),
    crc32: () => {
      crc = crc32(piece, crc)
    },
  }
  const best: HashSpeeds = { QuickXorHash: 0, sha256: 0, crc32: 0 }
  for (let round = 0; round < ROUNDS; round++) {
    for (const name of Object.keys(ways) as (keyof HashSpeeds)[]) {
      const fromMs = systemClock.monotonicMs()
      for (let n = 0; n < pieces; n++) ways[name]()
      const ms = systemClock.monotonicMs() - fromMs
      best[name] = Math.max(best[name], (pieces * PIECE_BYTES) / 1e6 / ms)
    }
  }
  return best
}
