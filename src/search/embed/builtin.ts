/**
 * The embedded model, seen from the process that asks: it cuts what is asked into pieces and hands them to a process
 * of its own (builtin-process.ts).
 *
 *   idle ──first piece──▶ running ──nothing asked for IDLE_MS──▶ idle (its memory is given back)
 *   running ──the process dies──▶ idle: what it had is refused as transient
 *   any ──close──▶ closed
 *
 * Invariants:
 * - the process holds at most OPEN_MAX pieces of documents, so that it never waits for us and a query never for many
 * - a text's vector does not depend on what it is embedded with
 * - the process keeps ours alive only while something is asked
 */
import { type ChildProcess, fork } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { CancelTimer, Clock } from '../../base/clock.ts'
import { TidemarkError } from '../../base/errors.ts'
import { unpackVector } from '../index/vectors.ts'
import { BUILTIN_MODEL } from './builtin-model.ts'
import type { Piece, PieceAnswer, StartOptions } from './builtin-process.ts'
import type { Embedder, EmbedOptions } from './embedder.ts'

/** Characters of a piece, if it is not one text: some 100 ms of work. A query waits for the one at work. */
const PIECE_CHARS_MAX = 4_000
const OPEN_MAX = 2
const IDLE_MS = 10 * 60_000

export type BuiltinOptions = {
  threads: number
  /** Where the model's files are; by default where npm put them. */
  folder?: string
}

type Ask = {
  texts: readonly string[]
  options: EmbedOptions
  /** Into the answer, by the order of the texts. */
  take: (at: number, vector: Float32Array) => void
  fail: (error: unknown) => void
}
type Cut = { ask: Ask /** Indexes of its texts. */; of: readonly number[] }

export function openBuiltin(options: BuiltinOptions, { clock }: { clock: Clock }): Embedder {
  const model = new BuiltinProcess(options, clock)
  let background: readonly Float32Array[] | undefined
  return {
    model: BUILTIN_MODEL.id,
    dims: BUILTIN_MODEL.dims,
    chance: BUILTIN_MODEL.chance,
    get background() {
      background ??= readBackground().map(({ vector }) => unpackVector(Buffer.from(vector, 'base64')))
      return background
    },
    embed: (texts, how) => model.embed(texts, how),
    close: () => model.close(),
  }
}

/** `vector`: packed, as base64. Written by `scripts/embed-background.ts`. */
export type BackgroundText = { text: string; vector: string }

export const BACKGROUND_FILE = new URL('./builtin-background.json', import.meta.url)

export function readBackground(): BackgroundText[] {
  return JSON.parse(readFileSync(BACKGROUND_FILE, 'utf8')) as BackgroundText[]
}

class BuiltinProcess {
  readonly #options: BuiltinOptions
  readonly #clock: Clock
  readonly #waiting: Record<EmbedOptions['purpose'], Cut[]> = { query: [], document: [] }
  readonly #open = new Map<number, Cut>()
  #child: ChildProcess | undefined
  #ended: Promise<void> = Promise.resolve()
  #number = 0
  #idle: CancelTimer | undefined
  #isClosed = false

  constructor(options: BuiltinOptions, clock: Clock) {
    this.#options = options
    this.#clock = clock
  }

  embed(texts: readonly string[], options: EmbedOptions): Promise<Float32Array[]> {
    const { signal, purpose } = options
    if (this.#isClosed) return Promise.reject(died('has been closed'))
    if (signal.aborted) return Promise.reject(signal.reason)
    if (texts.length === 0) return Promise.resolve([])
    return new Promise((resolve, reject) => {
      const vectors: Float32Array[] = []
      let missing = texts.length
      const end = (): void => {
        signal.removeEventListener('abort', onAbort)
        this.#waiting[purpose] = this.#waiting[purpose].filter((cut) => cut.ask !== ask)
      }
      const ask: Ask = {
        texts,
        options,
        take: (at, vector) => {
          vectors[at] = vector
          missing -= 1
          if (missing > 0) return
          end()
          resolve(vectors)
        },
        fail: (error) => {
          end()
          reject(error)
        },
      }
      const onAbort = (): void => ask.fail(signal.reason)
      signal.addEventListener('abort', onAbort, { once: true })
      for (const of of cutIntoPieces(texts)) this.#waiting[purpose].push({ ask, of })
      this.#handOut()
    })
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#stop()
    for (const { ask } of [...this.#waiting.query, ...this.#waiting.document, ...this.#open.values()]) {
      ask.fail(died('has been closed'))
    }
    await this.#ended
  }

  #handOut(): void {
    if (this.#isClosed) return
    for (const cut of this.#waiting.query.splice(0)) this.#hand(cut)
    while (this.#open.size < OPEN_MAX) {
      const cut = this.#waiting.document.shift()
      if (!cut) break
      this.#hand(cut)
    }
    if (this.#open.size > 0 || !this.#child || this.#idle) return
    unref(this.#child)
    this.#idle = this.#clock.timer(IDLE_MS, () => this.#stop())
  }

  #hand(cut: Cut): void {
    this.#idle?.()
    this.#idle = undefined
    try {
      this.#child ??= this.#start()
    } catch (error) {
      cut.ask.fail(error)
      return
    }
    const number = ++this.#number
    this.#open.set(number, cut)
    ref(this.#child)
    const { texts, options } = cut.ask
    const piece: Piece = { number, texts: cut.of.map((at) => texts[at]!), purpose: options.purpose }
    // A channel that is closed is told by the end of the process.
    this.#child.send(piece, () => undefined)
  }

  #start(): ChildProcess {
    const folder = this.#options.folder ?? packagedFolder()
    const start: StartOptions = { folder, threads: this.#options.threads }
    const script = fileURLToPath(new URL('./builtin-process.ts', import.meta.url))
    const child = fork(script, [JSON.stringify(start)], {
      serialization: 'advanced',
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
      // Not ours: a debugger's port, say, can be had once.
      execArgv: [],
    })
    this.#ended = new Promise((resolve) => {
      const onEnd = (cause?: unknown): void => {
        resolve()
        if (this.#child === child) this.#lost(cause)
      }
      child.once('error', onEnd)
      child.once('exit', () => onEnd())
    })
    child.on('message', (answer: PieceAnswer) => this.#answered(answer))
    return child
  }

  #stop(): void {
    this.#idle?.()
    this.#idle = undefined
    const child = this.#child
    this.#child = undefined
    if (!child) return
    // Whoever closes waits for its end.
    ref(child)
    child.kill()
  }

  #answered(answer: PieceAnswer): void {
    const cut = this.#open.get(answer.number)
    this.#open.delete(answer.number)
    if (!cut) return
    if ('error' in answer) cut.ask.fail(refused(answer.error))
    else {
      const { dims } = BUILTIN_MODEL
      for (const [row, at] of cut.of.entries())
        cut.ask.take(at, answer.vectors.slice(row * dims, (row + 1) * dims))
    }
    this.#handOut()
  }

  #lost(cause: unknown): void {
    this.#child = undefined
    const lost = [...this.#open.values()]
    this.#open.clear()
    for (const { ask } of lost) ask.fail(died('ended', cause))
    this.#handOut()
  }
}

/** Indexes of texts that are handed over together: a message for each would cost more than it is worth. */
export function cutIntoPieces(texts: readonly string[]): number[][] {
  const pieces: number[][] = []
  let chars = 0
  for (const [at, text] of texts.entries()) {
    const last = pieces.at(-1)
    chars += text.length
    if (last && chars <= PIECE_CHARS_MAX) last.push(at)
    else {
      pieces.push([at])
      chars = text.length
    }
  }
  return pieces
}

function packagedFolder(): string {
  try {
    return join(dirname(fileURLToPath(import.meta.resolve('embedding-model'))), BUILTIN_MODEL.folder)
  } catch (cause) {
    throw refused({ message: 'The embedding model is not installed', code: 'embedding-model-missing', cause })
  }
}

function refused({ message, code, cause }: { message: string; code?: string | undefined; cause?: unknown }) {
  return new TidemarkError(`${message}.`, {
    kind: 'permanent',
    code: code ?? 'embedding-failed',
    hint: code?.startsWith('embedding-model') ? 'Run `npm ci` again.' : undefined,
    cause,
  })
}

function died(how: string, cause?: unknown): TidemarkError {
  return new TidemarkError(`The process of the embedding model ${how}.`, {
    kind: 'transient',
    code: 'embedding-process',
    hint: 'What it was doing is tried again.',
    cause,
  })
}

function ref(child: ChildProcess): void {
  child.ref()
  child.channel?.ref()
}

function unref(child: ChildProcess): void {
  child.unref()
  child.channel?.unref()
}
