/**
 * The vectors of our own examples, made once by the embedding model of this package: making them takes seconds of a
 * processor. Whether the search uses that model is told by one of them, made anew; another model makes all of them.
 */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { z } from 'zod'
import { normalise } from '../../../search/embed/embedder.ts'

const FILE = new URL('./vectors.json', import.meta.url)
/** Below it they are of another model: what rounding costs is far less. */
const SAME_COSINE = 0.98

const stored = z.strictObject({
  model: z.string(),
  dims: z.int(),
  /** Of the texts, in their order. */
  texts: z.string(),
  /** A signed byte for each number, each vector stretched to all of its range. */
  vectors: z.base64(),
})
export type StoredVectors = z.output<typeof stored>

/** Undefined where they are those of other texts. */
export function storedVectors(texts: readonly string[]): Float32Array[] | undefined {
  const { dims, vectors, texts: key } = stored.parse(JSON.parse(readFileSync(FILE, 'utf8')))
  if (key !== textsKey(texts)) return undefined
  const bytes = Buffer.from(vectors, 'base64')
  return texts.map((_, at) =>
    normalise(Float32Array.from(new Int8Array(bytes.subarray(at * dims, (at + 1) * dims)))),
  )
}

export function areOfSameModel(one: Float32Array, other: Float32Array): boolean {
  if (one.length !== other.length) return false
  return one.reduce((sum, value, at) => sum + value * other[at]!, 0) >= SAME_COSINE
}

/** As the file is written: see eval/write-vectors.ts. */
export function packVectors(
  texts: readonly string[],
  { model, vectors }: { model: string; vectors: readonly Float32Array[] },
): StoredVectors {
  const dims = vectors[0]?.length ?? 0
  const bytes = Buffer.concat(
    vectors.map((vector) => {
      const most = vector.reduce((max, value) => Math.max(max, Math.abs(value)), 0)
      return Buffer.from(Int8Array.from(vector, (value) => Math.round((value / most) * 127)).buffer)
    }),
  )
  return { model, dims, texts: textsKey(texts), vectors: bytes.toString('base64') }
}

function textsKey(texts: readonly string[]): string {
  return createHash('sha256').update(JSON.stringify(texts)).digest('hex').slice(0, 32)
}
