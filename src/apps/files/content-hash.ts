/**
 * What a content is known by, in one pass over its bytes: QuickXorHash, which is all that OneDrive tells, and SHA-256.
 * QuickXorHash is the same for contents in which records of 160 bytes change places: it tells whether bytes arrived
 * whole, and not whether somebody edited them.
 */
import { createHash, type Hash } from 'node:crypto'
import { QuickXorHash } from '../../base/quick-xor-hash.ts'
import type { Digests } from './trees.ts'

export class ContentHash {
  readonly #quickXor: QuickXorHash
  readonly #sha256: Hash
  #bytes: number

  constructor(from?: ContentHash) {
    this.#quickXor = from ? from.#quickXor.copy() : new QuickXorHash()
    this.#sha256 = from ? from.#sha256.copy() : createHash('sha256')
    this.#bytes = from ? from.#bytes : 0
  }

  /** Of how many bytes it is. */
  get bytes(): number {
    return this.#bytes
  }

  update(piece: Uint8Array): this {
    this.#quickXor.update(piece)
    this.#sha256.update(piece)
    this.#bytes += piece.length
    return this
  }

  /** Can be asked again, and more can be added after. */
  digest(): Digests {
    return {
      hash: this.#quickXor.digest().toString('base64'),
      sha256: this.#sha256.copy().digest('base64'),
    }
  }
}

export function digestsOf(bytes: Uint8Array): Digests {
  return new ContentHash().update(bytes).digest()
}

export const DIGESTS_OF_NOTHING: Digests = digestsOf(new Uint8Array())
