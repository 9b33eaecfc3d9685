/** A process of the assistant that can be killed at any instant: e2e/assistant/child.ts. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import type { AssistWorld, ChildOptions } from '../../src/apps/assistant/assist-world.suite.ts'

const CHILD = join(import.meta.dirname, 'child.ts')

export class ChildWorker {
  readonly #process: ChildProcess

  private constructor(process: ChildProcess) {
    this.#process = process
  }

  /** Resolves when its engine is at work. */
  static async start(world: AssistWorld): Promise<ChildWorker> {
    const options: ChildOptions = world.childOptions()
    const child = spawn(process.execPath, ['--no-warnings', CHILD, JSON.stringify(options)], {
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

  async kill(): Promise<void> {
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return
    const gone = once(this.#process, 'exit')
    this.#process.kill('SIGKILL')
    await gone
  }
}
