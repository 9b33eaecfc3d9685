import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import {
  hostIdentity,
  isDeadHere,
  type ProcessIdentity,
  parseStat,
  processIdentity,
} from './process-identity.ts'

const IDENTIFY = `
  import { processIdentity } from ${JSON.stringify(new URL('./process-identity.ts', import.meta.url).href)}
  console.log(JSON.stringify(processIdentity()))
  process.stdin.resume()
`

async function startChild(): Promise<{ child: ChildProcess; identity: ProcessIdentity }> {
  const child = spawn(process.execPath, ['--input-type=module', '-e', IDENTIFY], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const [line] = (await once(child.stdout!, 'data')) as [Buffer]
  return { child, identity: JSON.parse(String(line)) as ProcessIdentity }
}

const rowOf = (identity: ProcessIdentity): { host: string; pid: number; pid_start: string } => ({
  host: identity.host,
  pid: identity.pid,
  pid_start: identity.pidStart,
})

describe('the identity of a process', () => {
  test('is the same whenever it is asked for', () => {
    assert.deepEqual(processIdentity(), processIdentity())
    assert.equal(processIdentity().pid, process.pid)
  })

  test('has a host that all processes of this machine share', async () => {
    const { child, identity } = await startChild()
    assert.equal(identity.host, hostIdentity())
    assert.equal(identity.pid, child.pid)
    child.kill('SIGKILL')
    await once(child, 'exit')
  })
})

describe('a process of this host is dead', () => {
  test('once it was killed, and not before', async () => {
    const self = processIdentity()
    const { child, identity } = await startChild()
    assert.equal(isDeadHere(rowOf(identity), self), false)
    child.kill('SIGKILL')
    await once(child, 'exit')
    assert.equal(isDeadHere(rowOf(identity), self), true)
  })

  test('if its pid now belongs to a process that started at another time', () => {
    const self = processIdentity()
    const start = self.pidStart === '' ? '' : String(Number(self.pidStart) - 1)
    assert.equal(isDeadHere({ ...rowOf(self), pid_start: start }, self), self.pidStart !== '')
  })

  test('unless it is this one', () => {
    const self = processIdentity()
    assert.equal(isDeadHere(rowOf(self), self), false)
  })

  test('even while it is a zombie that nobody has collected', async (t) => {
    // The shell starts a process that ends at once, becomes another program and never collects it.
    const parent = spawn('sh', ['-c', 'true & echo $!; exec sleep 60'], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    t.after(() => parent.kill('SIGKILL'))
    const [line] = (await once(parent.stdout!, 'data')) as [Buffer]
    const self = processIdentity()
    const zombie = { host: self.host, pid: Number(String(line)), pid_start: '' }
    // Only /proc tells a zombie from the living.
    while (self.pidStart !== '' && !isDeadHere(zombie, self))
      await new Promise((resolve) => setImmediate(resolve))
    assert.equal(isDeadHere(zombie, self), self.pidStart !== '')
  })
})

describe('nothing is said about', () => {
  test('processes of other hosts', () => {
    const self = processIdentity()
    assert.equal(isDeadHere({ host: 'elsewhere', pid: 2 ** 22 + 1, pid_start: '1' }, self), false)
  })

  test('the start of a process whose start was not known when it registered', () => {
    const self = processIdentity()
    assert.equal(isDeadHere({ ...rowOf(self), pid_start: '' }, self), false)
  })
})

describe('a line of /proc/PID/stat', () => {
  const rest = `1 10 10 0 -1 4194304 100 0 0 0 0 0 0 0 20 0 1 0 201707 3133440 383 1844674407`

  test('is read past spaces and parentheses in the program name', () => {
    assert.deepEqual(parseStat(`77 (a) b (c) R ${rest}\n`), { alive: true, start: '201707' })
    assert.deepEqual(parseStat(`77 (node) S ${rest}\n`), { alive: true, start: '201707' })
  })

  test('of a zombie or of a dead process says so', () => {
    assert.equal(parseStat(`77 (node) Z ${rest}`).alive, false)
    assert.equal(parseStat(`77 (node) X ${rest}`).alive, false)
  })

  test('of this process agrees with its identity', () => {
    const { pidStart } = processIdentity()
    if (pidStart === '') return // a system without /proc has nothing to compare
    assert.equal(parseStat(readFileSync(`/proc/${process.pid}/stat`, 'utf8')).start, pidStart)
  })
})
