/**
 * Many messages in one call. Every id that was asked for is answered exactly once, as soon as its part has
 * come; what is missing, damaged, refused or too large is an answer about that id alone.
 *
 * Answers are matched by Content-ID, and a message must also name the id that it was asked for: the order of
 * parts means nothing.
 */
import type { Clock } from '../../base/clock.ts'
import { TidemarkError } from '../../base/errors.ts'
import type { Answer, Transport } from '../http-transport.ts'
import type { Pace } from '../pace.ts'
import { BatchParser, type BatchPart, boundaryOf, buildBatch } from './batch.ts'
import { classify, damagedAnswer, tooLarge } from './errors.ts'

export type FailedAnswer = { id: string; ok: false; error: TidemarkError }

export type { Pace } from '../pace.ts'

export type BatchCallOptions<A> = {
  ids: readonly string[]
  /** Of the call for one id. */
  pathOf: (id: string) => string
  /** The name and the price of one call. */
  method: string
  units: number
  /** What the body of a part says; throws a TidemarkError where it is not about `id`. The body does not last. */
  answerOf: (id: string, body: Buffer) => A
  /** Awaited: nothing more is read meanwhile. */
  onAnswer: (answer: A | FailedAnswer) => void | Promise<void>
  transport: Transport
  pace: Pace
  clock: Clock
  signal?: AbortSignal
}

/** A message has 50 MB at most, a third more as text. */
export const PART_BYTES_MAX = 160 * 1024 * 1024
const PATH = '/batch/gmail/v1'
/** Parts whose token was refused are asked for once more with a new one. */
const ROUNDS_MAX = 2

export async function callBatch<A>(options: BatchCallOptions<A>): Promise<void> {
  let ids = [...new Set(options.ids)]
  for (let round = 1; round <= ROUNDS_MAX && ids.length > 0; round++) {
    const { method, units, pace, signal } = options
    const run = new BatchRun(options, ids, round === ROUNDS_MAX)
    try {
      await pace({ method: `${method}.batch`, units: units * ids.length, signal }, (paced) => run.go(paced))
    } catch (error) {
      // Each refusal was delivered; this one was for the pace alone.
      if (error === undefined || error !== run.refusal) throw error
    }
    ids = run.again
  }
}

class BatchRun<A> {
  /** What the pace is told where parts were throttled. */
  refusal: TidemarkError | undefined
  /** To be asked for again with a new token. */
  readonly again: string[] = []
  readonly #options: BatchCallOptions<A>
  readonly #open: Set<string>
  readonly #isLast: boolean
  readonly #throttles: TidemarkError[] = []

  constructor(options: BatchCallOptions<A>, ids: readonly string[], isLast: boolean) {
    this.#options = options
    this.#open = new Set(ids)
    this.#isLast = isLast
  }

  async go(signal = this.#options.signal): Promise<void> {
    const { transport, pathOf } = this.#options
    const calls = [...this.#open].map((id) => ({ key: id, path: pathOf(id) }))
    const call = { verb: 'POST', path: PATH, ...buildBatch(calls) } as const
    const trouble = await transport.send(call, (answer) => this.#read(answer, signal), signal)
    signal?.throwIfAborted()
    for (const id of this.#open) {
      const error = trouble ?? damagedAnswer(id, 'the batch came without it')
      await this.#deliver(id, { id, ok: false, error })
    }
    this.#tellPace()
  }

  /** Takes what has come; the result is why there is no more. */
  async #read(answer: Answer, signal: AbortSignal | undefined): Promise<TidemarkError | undefined> {
    const parser = new BatchParser({
      boundary: boundaryOf(answer.contentType),
      partBytesMax: PART_BYTES_MAX,
      partsMax: this.#open.size * 2,
    })
    let trouble: unknown
    const parts = partsOf(answer, parser, (error) => {
      trouble = error
    })
    for await (const part of parts) {
      signal?.throwIfAborted()
      await this.#take(part, answer)
    }
    signal?.throwIfAborted()
    if (trouble !== undefined && !(trouble instanceof TidemarkError)) throw trouble
    if (!trouble) await answer.finish()
    return trouble
  }

  async #take(part: BatchPart, answer: Answer): Promise<void> {
    const id = part.key
    // Of something that was never asked for, or the second of its kind.
    if (id === undefined || !this.#open.has(id)) return
    if (part.state === 'whole' && part.status === 401 && !this.#isLast) {
      answer.refuseToken()
      this.#open.delete(id)
      this.again.push(id)
      return
    }
    let outcome: A | FailedAnswer
    try {
      outcome = this.#outcomeOf(id, part)
    } catch (error) {
      if (!(error instanceof TidemarkError)) throw error
      if (error.kind === 'throttled') this.#throttles.push(error)
      outcome = { id, ok: false, error }
    }
    await this.#deliver(id, outcome)
  }

  #outcomeOf(id: string, part: BatchPart): A {
    if (part.state !== 'whole') {
      throw part.state === 'too-large'
        ? tooLarge(id, PART_BYTES_MAX)
        : damagedAnswer(id, 'its part cannot be read')
    }
    const { status, headers, body } = part
    if (status < 200 || status >= 300) {
      const nowMs = this.#options.clock.now()
      throw classify({ status, headers, nowMs, body: body.toString('utf8', 0, 64 * 1024) })
    }
    return this.#options.answerOf(id, body)
  }

  async #deliver(id: string, outcome: A | FailedAnswer): Promise<void> {
    this.#open.delete(id)
    await this.#options.onAnswer(outcome)
  }

  #tellPace(): void {
    const [first] = this.#throttles
    if (!first) return
    const retryAfterMs = Math.max(...this.#throttles.map((error) => error.retryAfterMs ?? 0)) || undefined
    this.refusal = new TidemarkError(
      `${this.#throttles.length} calls of a batch were refused: ${first.message}`,
      {
        kind: 'throttled',
        code: first.code,
        hint: first.hint,
        retryAfterMs,
        refusedUnits: this.#throttles.length * this.#options.units,
      },
    )
    throw this.refusal
  }
}

/** Only what reading throws goes to `onTrouble`; what the consumer throws goes its own way. */
async function* partsOf(
  answer: Answer,
  parser: BatchParser,
  onTrouble: (error: unknown) => void,
): AsyncGenerator<BatchPart, void, undefined> {
  try {
    while (!parser.closed) {
      const chunk = await answer.next()
      if (!chunk) break
      yield* parser.push(chunk)
    }
    parser.end()
  } catch (error) {
    onTrouble(error)
  } finally {
    parser.release()
  }
}
