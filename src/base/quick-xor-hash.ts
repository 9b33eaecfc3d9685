/**
 * QuickXorHash: the checksum that OneDrive gives of every file. Not a cryptographic hash.
 *
 * Byte i is XORed into a register of 160 bits at the bit 11·i mod 160, wrapping around; at the end the length,
 * as 64 bits in little-endian order, is XORed into the last eight bytes.
 *
 * 11 and 160 have no common factor, so the place of a byte depends only on i mod 160. XOR asks for no order: the
 * input is first folded into 160 sums, one for each place (quick-xor-fold.ts), and only the digest puts the 160 sums
 * into the register.
 */
import { foldSimd, foldWords, PERIOD_BYTES } from './quick-xor-fold.ts'

/** All that is needed to go on later, and elsewhere. */
export type QuickXorState = { sums: string; length: number }

const STEP_BITS = 11
const DIGEST_BYTES = 20
const DIGEST_BITS = DIGEST_BYTES * 8
const LENGTH_AT = 12
const fold = foldSimd ?? foldWords

export class QuickXorHash {
  /** Of the bytes so far, by their place i mod 160. */
  readonly #sums = new Uint8Array(PERIOD_BYTES)
  #length = 0

  static from({ sums, length }: QuickXorState): QuickXorHash {
    const bytes = Buffer.from(sums, 'base64')
    if (bytes.length !== PERIOD_BYTES || !Number.isSafeInteger(length) || length < 0) {
      throw new RangeError('This is not the state of a QuickXorHash.')
    }
    const hash = new QuickXorHash()
    hash.#sums.set(bytes)
    hash.#length = length
    return hash
  }

  update(bytes: Uint8Array): this {
    fold(this.#sums, this.#length % PERIOD_BYTES, bytes)
    this.#length += bytes.length
    return this
  }

  digest(): Buffer {
    const digest = Buffer.alloc(DIGEST_BYTES)
    for (let place = 0, bit = 0; place < PERIOD_BYTES; place++, bit = (bit + STEP_BITS) % DIGEST_BITS) {
      const spread = this.#sums[place]! << (bit % 8)
      const at = bit >> 3
      const after = (at + 1) % DIGEST_BYTES
      digest[at] = digest[at]! ^ (spread & 0xff)
      digest[after] = digest[after]! ^ (spread >> 8)
    }
    for (let at = LENGTH_AT, rest = this.#length; rest > 0; at++, rest = Math.floor(rest / 256)) {
      digest[at] = digest[at]! ^ (rest % 256)
    }
    return digest
  }

  copy(): QuickXorHash {
    const hash = new QuickXorHash()
    hash.#sums.set(this.#sums)
    hash.#length = this.#length
    return hash
  }

  state(): QuickXorState {
    return { sums: Buffer.from(this.#sums).toString('base64'), length: this.#length }
  }
}

/** In base64, as OneDrive writes it. */
export function quickXorHash(bytes: Uint8Array): string {
  return new QuickXorHash().update(bytes).digest().toString('base64')
}
