/** File commands as processes that can be stopped and killed, with a simulated OneDrive. */
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as pass } from 'node:timers/promises'
import { FilesHome, type FilesHomeOptions } from '../../src/apps/files/cli/files.suite.ts'
import { BIN, type Ended } from '../../src/cli/jobs/jobs.suite.ts'

const LOOK_MS = 10

export type Running = { child: ChildProcess; ended: Promise<Ended>; said: () => string }

export class CliWorld extends FilesHome {
  readonly #children = new Set<ChildProcess>()

  static override async start(options: FilesHomeOptions = {}): Promise<CliWorld> {
    const { sim, base } = await FilesHome.prepare(options)
    const world = new CliWorld(sim, base, options.env)
    await world.connectAll(options.access)
    return world
  }

  begin(...args: string[]): Running {
    const child = spawn(BIN, args, { env: this.env, cwd: this.place, stdio: ['ignore', 'pipe', 'pipe'] })
    this.#children.add(child)
    const written = { stdout: '', stderr: '' }
    child.stdout.on('data', (text: Buffer) => (written.stdout += text.toString()))
    child.stderr.on('data', (text: Buffer) => (written.stderr += text.toString()))
    const ended = once(child, 'close').then(([code]) => {
      this.#children.delete(child)
      return { code: code as number | null, ...written }
    })
    return { child, ended, said: () => written.stdout + written.stderr }
  }

  /** The folder is set up and in step, by this process: what a test begins with. */
  async setUp(): Promise<void> {
    const { code, stderr } = await super.run('files', 'sync', this.root())
    assert.equal(code, 0, stderr)
  }

  override run(...args: string[]): Promise<Ended> {
    return this.begin(...args).ended
  }

  /** Fails when the process that is to bring it about ends before. */
  async until(isSo: () => boolean, by?: Running): Promise<void> {
    while (!isSo()) {
      if (by && by.child.exitCode !== null) throw new Error(`it ended: ${by.said()}`)
      await pass(LOOK_MS)
    }
  }

  /** Kills it once so many more requests were answered; what it said where it ended before. */
  async killAfter(requests: number, ...args: string[]): Promise<Ended | undefined> {
    const until = this.sim.log.served + requests
    const { child, ended } = this.begin(...args)
    let result: Ended | undefined
    void ended.then((end) => {
      result = end
    })
    await this.until(() => result !== undefined || this.sim.log.served >= until)
    if (result) return result
    child.kill('SIGKILL')
    await ended
    return undefined
  }

  override async close(): Promise<void> {
    for (const child of this.#children) child.kill('SIGKILL')
    await super.close()
  }
}
