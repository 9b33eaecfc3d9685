/**
 * Makes the HTML of messages safe in a thread of its own, one message at a time. Whoever sends a mail decides how long
 * that takes: the main thread, which everybody waits for, has no part in it, and a thread that takes too long is ended.
 *
 *   idle ──render──▶ busy ──answer──▶ idle
 *   busy ──too long, out of memory──▶ no thread, until the next render
 */
import module from 'node:module'
import { Worker } from 'node:worker_threads'
import type { Clock } from '../../../base/clock.ts'

/** A hundred times what the largest newsletter takes. */
export const RENDER_MS_MAX = 5_000
const HEAP_MB_MAX = 256

export type RenderInput = { raw: Uint8Array; images: boolean }
export type RenderAnswer = { document: string | null }

/** `late`: it took too long, or too much. */
export type Rendered = RenderAnswer | 'late'

export type HtmlRendererOptions = {
  clock: Clock
  /** The thread; another one in tests. */
  script?: URL
}

export class HtmlRenderer {
  readonly #clock: Clock
  readonly #script: URL
  #worker: Worker | undefined
  #turn: Promise<unknown> = Promise.resolve()
  #isClosed = false

  constructor({ clock, script = new URL('./html-thread.ts', import.meta.url) }: HtmlRendererOptions) {
    this.#clock = clock
    this.#script = script
  }

  render(input: RenderInput): Promise<Rendered> {
    const rendered = this.#turn.then(() => this.#render(input))
    // One that could not be begun, for want of memory perhaps, is no reason not to try the next.
    this.#turn = rendered.catch(() => undefined)
    return rendered
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await this.#end()
  }

  async #render(input: RenderInput): Promise<Rendered> {
    if (this.#isClosed) return 'late'
    this.#worker ??= this.#start()
    const worker = this.#worker
    worker.ref()
    const { promise, resolve } = Promise.withResolvers<Rendered>()
    const cancel = this.#clock.timer(RENDER_MS_MAX, () => resolve('late'), { keepAlive: true })
    const onMessage = (answer: RenderAnswer): void => resolve(answer)
    const onEnd = (): void => resolve('late')
    worker.once('message', onMessage).once('exit', onEnd)
    try {
      worker.postMessage(input)
      const rendered = await promise
      if (rendered === 'late') await this.#end()
      return rendered
    } finally {
      cancel()
      worker.off('message', onMessage).off('exit', onEnd)
      worker.unref()
    }
  }

  #start(): Worker {
    const entry = new URL('../../../ledger/thread-entry.js', import.meta.url)
    const worker = new Worker(entry, {
      workerData: { script: this.#script.href, compileCache: module.getCompileCacheDir() },
      resourceLimits: { maxOldGenerationSizeMb: HEAP_MB_MAX },
    })
    // What ends a thread also makes it exit, and that is what is waited for.
    worker.on('error', () => {})
    worker.once('exit', () => {
      if (this.#worker === worker) this.#worker = undefined
    })
    return worker
  }

  async #end(): Promise<void> {
    const worker = this.#worker
    this.#worker = undefined
    await worker?.terminate()
  }
}
