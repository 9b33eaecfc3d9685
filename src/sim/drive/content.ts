/**
 * What a document holds. Bytes may be given, or made each time they are asked for, so that a world of ten thousand
 * documents is there at once; only their size and their checksums are remembered.
 */
import { createHash } from 'node:crypto'

export type ContentInput = string | Uint8Array | (() => string | Uint8Array)

type Digests = { size: number; md5: string; sha1: string; sha256: string }

export class Content {
  readonly #input: ContentInput
  #digests: Digests | undefined

  constructor(input: ContentInput) {
    this.#input = input
  }

  bytes(): Buffer {
    const made = typeof this.#input === 'function' ? this.#input() : this.#input
    return typeof made === 'string'
      ? Buffer.from(made)
      : Buffer.from(made.buffer, made.byteOffset, made.length)
  }

  text(): string {
    return this.bytes().toString('utf8')
  }

  get digests(): Digests {
    if (this.#digests) return this.#digests
    const bytes = this.bytes()
    const hash = (name: string): string => createHash(name).update(bytes).digest('hex')
    this.#digests = { size: bytes.length, md5: hash('md5'), sha1: hash('sha1'), sha256: hash('sha256') }
    return this.#digests
  }
}
