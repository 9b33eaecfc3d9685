/**
 * The processes of a run: each is known by its id, has a limit on its time, and is ended at the latest with the run.
 */
import { type ChildProcess, fork, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { sleep, systemClock } from '../src/base/clock.ts'

export const TIDEMARK = fileURLToPath(new URL('../bin/tidemark', import.meta.url))
const NODE_COMPILE_CACHE = fileURLToPath(new URL('./node_modules/.cache/compiled', import.meta.url))

/** As bin/tidemark has them, for orders that stand for it. */
export const LAUNCHER = {
  flags: ['--max-semi-space-size=4', '--heap-growing-percent=60'],
  env: { MALLOC_ARENA_MAX: '1', MALLOC_MMAP_THRESHOLD_: '131072', MALLOC_TRIM_THRESHOLD_: '131072' },
}

/** Of its output only the end is kept. */
const OUTPUT_CHARS_MAX = 200_000
const STOP_MS_MAX = 20_000
const LOOK_MS = 100

export type Ended = { code: number | null; signal: NodeJS.Signals | null; stdout: string; stderr: string }

export class Running {
  readonly child: ChildProcess
  readonly ended: Promise<Ended>
  #peakMb = 0
  #isOver = false

  constructor(child: ChildProcess, msMax: number) {
    this.child = child
    let [stdout, stderr] = ['', '']
    child.stdout?.on('data', (text: Buffer) => {
      stdout = (stdout + text.toString()).slice(-OUTPUT_CHARS_MAX)
    })
    child.stderr?.on('data', (text: Buffer) => {
      stderr = (stderr + text.toString()).slice(-OUTPUT_CHARS_MAX)
    })
    const cancel = systemClock.timer(msMax, () => {
      stderr += `\nnot done after ${msMax / 1000} s`
      child.kill('SIGKILL')
    })
    this.ended = once(child, 'close').then(([code, signal]) => {
      cancel()
      this.#isOver = true
      return { code: code as number | null, signal: signal as NodeJS.Signals | null, stdout, stderr }
    })
    // Whoever needs its end awaits it; a process that could not be started is found there too.
    this.ended.catch(() => {
      this.#isOver = true
    })
  }

  get isOver(): boolean {
    return this.#isOver
  }

  /** The highest resident size so far: the kernel keeps it, so looking now and then misses only the very last moment. */
  async watchMemory(): Promise<number> {
    while (!this.#isOver) {
      this.#peakMb = Math.max(this.#peakMb, peakResidentMb(this.child.pid) ?? 0)
      await Promise.race([sleep(systemClock, LOOK_MS), this.ended])
    }
    return this.#peakMb
  }

  /** Asks it to end, and after a while makes it. */
  async stop(): Promise<void> {
    if (this.#isOver) return
    this.child.kill('SIGTERM')
    const cancel = systemClock.timer(STOP_MS_MAX, () => this.child.kill('SIGKILL'))
    await this.ended.catch(() => {})
    cancel()
  }
}

export class Processes {
  readonly #running = new Set<Running>()
  readonly #childFile: string

  /** `childFile` takes the orders. */
  constructor(childFile: string) {
    this.#childFile = childFile
  }

  /** The command line, as people start it. */
  tidemark(args: readonly string[], options: { env: NodeJS.ProcessEnv; msMax: number }): Running {
    const child = spawn(TIDEMARK, [...args], { env: options.env, stdio: ['ignore', 'pipe', 'pipe'] })
    return this.#keep(new Running(child, options.msMax))
  }

  /** An order for child.ts; its answer is the message that it sends. */
  async order<Answer>(
    order: object,
    options: { msMax: number; flags?: readonly string[]; env?: Readonly<Record<string, string>> },
  ): Promise<Answer> {
    const child = fork(this.#childFile, [JSON.stringify(order)], {
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
      execArgv: [...(options.flags ?? [])],
      env: { ...process.env, ...options.env, NODE_COMPILE_CACHE },
    })
    let answer: { value: Answer } | { error: string } | undefined
    child.on('message', (message) => {
      answer = message as typeof answer
    })
    const running = this.#keep(new Running(child, options.msMax))
    const { stderr } = await running.ended
    if (answer && 'value' in answer) return answer.value
    throw new Error(answer?.error ?? `its process ended without an answer: ${stderr.slice(-1_000)}`)
  }

  /** A server in a process: the value that child.ts sends when it is ready. */
  async serve<Ready>(order: object, options: { msMax: number }): Promise<{ ready: Ready; running: Running }> {
    const child = fork(this.#childFile, [JSON.stringify(order)], {
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
      execArgv: [],
      env: { ...process.env, NODE_COMPILE_CACHE },
    })
    const running = this.#keep(new Running(child, options.msMax))
    const ended = running.ended.then(({ stderr }) => {
      throw new Error(`the process ended before it was ready: ${stderr.slice(-1_000)}`)
    })
    ended.catch(() => {})
    const [message] = await Promise.race([once(child, 'message'), ended])
    if ('error' in message) throw new Error(String(message.error))
    return { ready: message.value as Ready, running }
  }

  async close(): Promise<void> {
    await Promise.all([...this.#running].map((running) => running.stop()))
  }

  #keep(running: Running): Running {
    this.#running.add(running)
    const forget = (): void => {
      this.#running.delete(running)
    }
    running.ended.then(forget, forget)
    return running
  }
}

/** The first line that a process prints, as JSON. */
export async function firstLine<Value>({ child, ended }: Running): Promise<Value> {
  let text = ''
  const line = new Promise<string>((resolve) => {
    child.stdout?.on('data', (more: Buffer) => {
      text += more.toString()
      const end = text.indexOf('\n')
      if (end >= 0) resolve(text.slice(0, end))
    })
  })
  const over = ended.then(({ stderr }) => {
    throw new Error(`the process ended before it was ready: ${stderr.slice(-1_000)}`)
  })
  over.catch(() => {})
  return JSON.parse(await Promise.race([line, over])) as Value
}

/** Undefined when the process is gone, or where there is no /proc. */
function peakResidentMb(pid: number | undefined): number | undefined {
  try {
    const peak = /VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))
    return peak?.[1] === undefined ? undefined : Number(peak[1]) / 1024
  } catch {
    return undefined
  }
}
