/**
 * What turns texts into vectors, whoever does it. The model's id is stored with every vector: vectors of different
 * models say nothing about each other.
 *
 *   builtin   a model of this package, run on this machine: nothing is downloaded, nothing leaves it (builtin.ts)
 *   openai    any service that answers POST …/embeddings as OpenAI's does (http-embedder.ts)
 *   ollama    an Ollama server (http-embedder.ts)
 *   off       none: search is by words alone
 *
 * Invariants:
 * - vectors have the length 1 and `dims` numbers, and come in the order of their texts
 * - nothing is loaded or called before the first text is to be embedded
 * - a document's text and a query may be embedded differently: the purpose says which it is
 */
import { TidemarkError } from '../../base/errors.ts'

export type Purpose = 'document' | 'query'

export type EmbedOptions = { purpose: Purpose; signal: AbortSignal }

export type Embedder = {
  /** Names the weights and how they are used. */
  readonly model: string
  readonly dims: number
  /** The cosine up to which two texts are as far apart as by chance: models differ much in it. */
  readonly chance: number
  /** Texts of all kinds, embedded: a chunk answers a query only if it is nearer than those. Left out of most models. */
  readonly background?: readonly Float32Array[]
  embed(texts: readonly string[], options: EmbedOptions): Promise<Float32Array[]>
  close(): Promise<void>
}

/** Makes its length 1, in place; a vector of zeros, or of what is no number, is refused. */
export function normalise(vector: Float32Array): Float32Array {
  let sum = 0
  for (const value of vector) sum += value * value
  if (!(sum > 0 && Number.isFinite(sum))) {
    throw new TidemarkError('The embedding model answered with a vector that has no direction.', {
      kind: 'permanent',
      code: 'embedding-empty',
    })
  }
  const factor = 1 / Math.sqrt(sum)
  for (let at = 0; at < vector.length; at++) vector[at]! *= factor
  return vector
}
