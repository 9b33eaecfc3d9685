/** The receivers of a process: one for each pipeline that has a queue. */
import type { Clock } from '../../base/clock.ts'
import { asTidemarkError } from '../../base/errors.ts'
import type { Engine } from '../../engine/engine.ts'
import type { IngestKinds, SettledShard } from './kinds.ts'
import { noteFailure, Receiver } from './receiver.ts'

export type ReceiversInput = {
  kinds: () => IngestKinds
  engine: () => Engine | undefined
  clock: Clock
}

type Made = { receiver: Receiver; stamp: string; isStarted: boolean }

export class Receivers {
  readonly #in: ReceiversInput
  readonly #made = new Map<string, Made>()
  /** Why those cannot be opened that could not be, as it was told. */
  readonly #closed = new Map<string, string>()
  #turn: Promise<unknown> = Promise.resolve()
  onError: (error: unknown) => void = () => undefined

  constructor(input: ReceiversInput) {
    this.#in = input
  }

  /** Of the pipeline as it is configured now; undefined where it has no queue. Whoever asks meanwhile gets the same. */
  of(name: string): Promise<Receiver | undefined> {
    const made = this.#turn.then(() => this.#of(name))
    this.#turn = made.catch(() => undefined)
    return made
  }

  async #of(name: string): Promise<Receiver | undefined> {
    const { kinds, engine, clock } = this.#in
    const { pipelines } = kinds()
    const pipeline = await pipelines.get(name)
    const stamp = pipelines.stamp(name)!
    const known = this.#made.get(name)
    if (known?.stamp === stamp) return known.receiver
    await this.#drop(name)
    const queue = await pipelines.queue(name).catch(async (thrown: unknown) => {
      await noteFailure({ engine: engine()!, clock, pipeline }, asTidemarkError(thrown))
      throw thrown
    })
    if (!queue) return undefined
    const onError = (error: unknown): void => this.onError(error)
    const receiver = new Receiver({ kinds: kinds(), engine: engine()!, pipeline, queue, clock, onError })
    this.#made.set(name, { receiver, stamp, isStarted: false })
    return receiver
  }

  /** Receives for these pipelines from now on, and for no others. One that cannot be opened is told of once, and left out. */
  async follow(names: readonly string[]): Promise<void> {
    for (const name of this.#made.keys()) if (!names.includes(name)) await this.#drop(name)
    for (const name of names) {
      try {
        const receiver = await this.of(name)
        this.#closed.delete(name)
        const made = this.#made.get(name)
        if (!receiver || !made || made.isStarted) continue
        made.isStarted = true
        receiver.start()
      } catch (thrown) {
        const { message } = asTidemarkError(thrown)
        if (this.#closed.get(name) !== message) this.onError(thrown)
        this.#closed.set(name, message)
      }
    }
  }

  /** Shards were settled by a job of this process. */
  settled(pipeline: string, shards: readonly SettledShard[]): void {
    this.#made.get(pipeline)?.receiver.settled(shards)
  }

  async stop(): Promise<void> {
    for (const name of [...this.#made.keys()]) await this.#drop(name)
  }

  async #drop(name: string): Promise<void> {
    const made = this.#made.get(name)
    this.#made.delete(name)
    await made?.receiver.stop()
  }
}
