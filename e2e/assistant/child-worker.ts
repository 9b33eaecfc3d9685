/** A process of the assistant that can be killed at any instant: e2e/assistant/child.ts. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import type { ChildOptions } from '../../src/apps/assistant/assist-worker.suite.ts'
import type { AssistWorld } from '../../src/apps/assistant/assist-world.suite.ts'

const CHILD = join(import.meta.dirname, 'child.ts')
/** Half of a child's beginning is reading its own code. */
const COMPILED = join(import.meta.dirname, '../../node_modules/.cache/tidemark-crash')

export class ChildWorker {
  readonly #process: ChildProcess

  private constructor(process: ChildProcess) {
    this.#process = process
  }

  /** Resolves when its engine is at work. */
  static async start(world: AssistWorld): Promise<ChildWorker> {
    const options: ChildOptions = world.childOptions()
    const child = spawn(process.execPath, ['--no-warnings', CHILD, JSON.stringify(options)], {
      env: { ...process.env, NODE_COMPILE_CACHE: COMPILED },
      // By the channel it notices when whoever started it is gone.
      stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
    })
    await Promise.race([
      once(child.stdout!, 'data'),
      once(child, 'exit').then(([code]) => {
        throw new Error(`the child ended with ${code} before it began`)
      }),
    ])
    return new ChildWorker(child)
  }

  get pid(): number {
    return this.#process.pid!
  }

  async kill(): Promise<void> {
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return
    const gone = once(this.#process, 'exit')
    this.#process.kill('SIGKILL')
    await gone
  }
}
