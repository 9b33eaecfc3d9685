/** What docs/mail.md says is done, in its order, as a reader would: two terminals and a browser. */
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { commandsOf, readChapters } from '../document-blocks.ts'

const ROOT = join(import.meta.dirname, '..', '..')
const PAGE = join(ROOT, 'docs', 'mail.md')
const folder = mkdtempSync(join(tmpdir(), 'tidemark-document-'))

/** A second terminal: what is typed there, what it printed, and how it ended. */
class Command {
  readonly child: ChildProcess
  readonly ended: Promise<number | null>
  printed = ''
  #look: () => void = () => {}

  constructor(line: string, env: NodeJS.ProcessEnv) {
    this.child = spawn('sh', ['-c', `exec ${line}`], { cwd: ROOT, env, stdio: ['ignore', 'pipe', 'pipe'] })
    for (const stream of [this.child.stdout!, this.child.stderr!]) {
      stream.setEncoding('utf8').on('data', (text: string) => {
        this.printed += text
        this.#look()
      })
    }
    this.ended = once(this.child, 'close').then(([code]) => code as number | null)
  }

  /** What the pattern finds in what is printed, as soon as it is. */
  async says(pattern: RegExp): Promise<RegExpExecArray> {
    const found = new Promise<RegExpExecArray>((resolve) => {
      this.#look = () => {
        const match = pattern.exec(this.printed)
        if (match) resolve(match)
      }
      this.#look()
    })
    const ended = this.ended.then(() => null)
    const match = await Promise.race([found, ended])
    assert.ok(match ?? pattern.test(this.printed), this.printed)
    return match ?? pattern.exec(this.printed)!
  }
}

describe('docs/mail.md', () => {
  const [simulate = '', ...commands] = commandsOf(readChapters(PAGE))
  /** As the README sets it up. */
  const env: NodeJS.ProcessEnv = { ...process.env, PATH: `${join(ROOT, 'bin')}:${process.env.PATH}` }
  let sim: Command
  let found = ''

  before(async () => {
    assert.match(simulate, /^tidemark sim /)
    // As many as a reader has would prove no more.
    sim = new Command(simulate.replace(/--messages \d+/, '--messages 300'), env)
    await sim.says(/Ctrl-C ends it/)
    for (const [, name, value] of sim.printed.matchAll(/export (\w+)='([^']*)'/g)) env[name!] = value
    env.TIDEMARK_HOME = join(folder, 'home')
    // The one index of everything has a page and tests of its own.
    env.TIDEMARK_MAIL_INDEX = 'off'
  })

  after(async () => {
    sim.child.kill('SIGINT')
    await sim.ended
    rmSync(folder, { recursive: true, force: true })
  })

  for (const line of commands) {
    test(line, async () => {
      const typed = line.replace('MESSAGE-ID', found).replace('--to ', `--to ${folder}/`)
      const command = new Command(typed, env)
      if (line.includes('account add')) {
        const [address] = await command.says(/http:\/\/\S+/)
        await fetch(address)
      }
      if (line.includes('--watch')) {
        await command.says(/Ctrl-C stops/)
        command.child.kill('SIGINT')
      }
      assert.equal(await command.ended, 0, command.printed)
      assert.notEqual(command.printed, '')
      found ||= line.includes('mail search') ? (/\b[0-9a-f]{16}\b/.exec(command.printed)?.[0] ?? '') : ''
    })
  }

  test('a message was found and shown', () => assert.match(found, /^[0-9a-f]{16}$/))
})
