/**
 * The process in which the embedded model runs. It is one of its own because inference is native code: a crash or a
 * leak there must not be the server's, and its memory is given back when it ends.
 *
 * It answers one piece at a time, queries before documents, so that somebody who searches waits for one piece at most.
 * It ends when its parent does: the channel between them is then closed.
 */
import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { Tokenizer } from '@huggingface/tokenizers'
import type * as onnxruntime from 'onnxruntime-common'
import { BUILTIN_MODEL } from './builtin-model.ts'
import { normalise, type Purpose } from './embedder.ts'

export type Piece = { number: number; texts: readonly string[]; purpose: Purpose }
export type PieceAnswer =
  | { number: number; vectors: Float32Array }
  | { number: number; error: { message: string; code?: string | undefined } }
export type StartOptions = { folder: string; threads: number }

/** The package brings no declarations of its own. */
const { InferenceSession, Tensor } = createRequire(import.meta.url)('onnxruntime-node') as typeof onnxruntime

/** No token of the vocabulary stands for more characters: what is behind tokensMax of them is never looked at. */
const CHARS_PER_TOKEN_MAX = 20

type Model = { session: onnxruntime.InferenceSession; tokenizer: Tokenizer; separator: number }

const { folder, threads } = JSON.parse(process.argv[2] ?? '{}') as StartOptions
const waiting: Piece[] = []
let isAtWork = false
let loading: Promise<Model> | undefined

process.on('disconnect', () => process.exit())
process.on('message', (piece: Piece) => {
  waiting.push(piece)
  if (!isAtWork) void work()
})

async function work(): Promise<void> {
  isAtWork = true
  for (let piece = next(); piece; piece = next()) {
    send(await answer(piece))
    // Lets a query in that came meanwhile.
    await new Promise((resolve) => setImmediate(resolve))
  }
  isAtWork = false
}

function next(): Piece | undefined {
  const at = waiting.findIndex(({ purpose }) => purpose === 'query')
  return waiting.splice(Math.max(0, at), 1)[0]
}

async function answer(piece: Piece): Promise<PieceAnswer> {
  try {
    loading ??= load()
    return { number: piece.number, vectors: await embed(await loading, piece) }
  } catch (error) {
    const { message, code } = error as NodeJS.ErrnoException
    return { number: piece.number, error: { message, code } }
  }
}

function send(message: PieceAnswer): void {
  if (process.connected) process.send?.(message)
}

async function load(): Promise<Model> {
  const [weights, tokenizerJson] = await Promise.all([
    verified(BUILTIN_MODEL.files.weights),
    verified(BUILTIN_MODEL.files.tokenizer),
  ])
  const session = await InferenceSession.create(weights, {
    intraOpNumThreads: threads,
    interOpNumThreads: 1,
    executionMode: 'sequential',
    graphOptimizationLevel: 'all',
  })
  const tokenizer = new Tokenizer(JSON.parse(Buffer.from(tokenizerJson).toString('utf8')), {})
  const separator = tokenizer.token_to_id('[SEP]')
  if (separator === undefined) throw new Error('The vocabulary has no token that ends a text.')
  return { session, tokenizer, separator }
}

/** What is not exactly the file that was chosen is not run. */
async function verified({ path, sha256 }: { path: string; sha256: string }): Promise<Uint8Array> {
  const bytes = await readFile(join(folder, path)).catch((cause: NodeJS.ErrnoException) => {
    throw Object.assign(new Error(`${path} of the embedding model cannot be read (${cause.code})`), {
      code: 'embedding-model-missing',
    })
  })
  if (createHash('sha256').update(bytes).digest('hex') === sha256) return bytes
  throw Object.assign(new Error(`${path} of the embedding model is not the file that was published`), {
    code: 'embedding-model-damaged',
  })
}

/** All vectors of a piece, one behind the other. */
async function embed(model: Model, { texts }: Piece): Promise<Float32Array> {
  const vectors = new Float32Array(texts.length * BUILTIN_MODEL.dims)
  for (const [row, text] of texts.entries())
    vectors.set(await vectorOf(model, text), row * BUILTIN_MODEL.dims)
  return vectors
}

/**
 * One text at a time. Together they would be padded to the same length, and since the model's steps are quantised by
 * what is in a batch, a text's vector would depend on its neighbours; for chunks of 200 words it would be no faster.
 */
async function vectorOf({ session, tokenizer, separator }: Model, text: string): Promise<Float32Array> {
  const { dims, tokensMax, pooling } = BUILTIN_MODEL
  const { ids } = tokenizer.encode(text.slice(0, tokensMax * CHARS_PER_TOKEN_MAX))
  const tokens = ids.length > tokensMax ? [...ids.slice(0, tokensMax - 1), separator] : ids
  const shape = [1, tokens.length]
  const output = await session.run({
    input_ids: new Tensor('int64', BigInt64Array.from(tokens, BigInt), shape),
    attention_mask: new Tensor('int64', new BigInt64Array(tokens.length).fill(1n), shape),
    token_type_ids: new Tensor('int64', new BigInt64Array(tokens.length), shape),
  })
  const states = output.last_hidden_state?.data as Float32Array
  const vector = new Float32Array(dims)
  const pooled = pooling === 'first' ? 1 : tokens.length
  for (let token = 0; token < pooled; token++) {
    for (let at = 0; at < dims; at++) vector[at]! += states[token * dims + at]!
  }
  return normalise(vector)
}
