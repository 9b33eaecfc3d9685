/** The test runner itself: it must be able to fail. */
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { after, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { isRunning } from './leftovers.ts'
import { memoryFolder } from './test-folder.ts'

const RUNNER = join(import.meta.dirname, 'test.ts')
const folder = mkdtempSync(join(tmpdir(), 'tidemark-runner-'))
after(() => rmSync(folder, { recursive: true, force: true }))

let count = 0

function testFile(body: string): string {
  const path = join(folder, `${count++}.test.ts`)
  writeFileSync(
    path,
    `import { describe, test } from 'node:test'\nimport assert from 'node:assert/strict'\n${body}\n`,
  )
  return path
}

/** The runner refuses to run inside another; it is told nothing of the one that runs this file. */
function cleanEnvironment(): NodeJS.ProcessEnv {
  const { NODE_TEST_CONTEXT: _, TIDEMARK_TEST_PG: __, ...env } = process.env
  return env
}

function runTests(...files: string[]): { code: number | null; last: string; output: string } {
  const { status, stdout, stderr } = spawnSync(process.execPath, [RUNNER, ...files], {
    encoding: 'utf8',
    env: cleanEnvironment(),
  })
  return { code: status, last: stdout.trimEnd().split('\n').at(-1) ?? '', output: stdout + stderr }
}

describe('a run', () => {
  test('passes when every test passes, and says how many and what they took', () => {
    const { code, last, output } = runTests(
      testFile(`describe('d', () => { test('a', () => {}); test('b', () => {}) })`),
    )
    assert.deepEqual([code, last], [0, '2 passed, 0 failed, 0 skipped'])
    assert.match(output, /^ok {3}.*: 2 passed, [\d.]+ s, processor [\d.]+ s$/m)
  })

  const failing: [what: string, body: string, last: string, output: RegExp][] = [
    [
      'a test fails, with its name and the difference',
      `describe('d', () => { test('a', () => assert.equal(1, 2)) })`,
      '0 passed, 1 failed, 0 skipped',
      /failed: .*\.test\.ts › d › a\n +AssertionError[\s\S]*1 !== 2/,
    ],
    [
      'a test is skipped',
      `test('a', () => {}); test('b', { skip: 'no time' }, () => {})`,
      '1 passed, 0 failed, 1 skipped',
      /skipped: .*\.test\.ts › b \(no time\)/,
    ],
    [
      'a whole suite is skipped',
      `describe.skip('d', () => { test('a', () => {}) })`,
      '0 passed, 0 failed, 1 skipped',
      /› d/,
    ],
    [
      'a test skips itself',
      `test('a', (t) => t.skip('late'))`,
      '0 passed, 0 failed, 1 skipped',
      /› a \(late\)/,
    ],
    ['a test is left to do', `test.todo('a')`, '0 passed, 0 failed, 1 skipped', /› a/],
    ['a file holds no test', '', '0 passed, 1 failed, 0 skipped', /holds none/],
    [
      'a file holds an empty suite',
      `describe('d', () => {})`,
      '0 passed, 1 failed, 0 skipped',
      /no test ran/,
    ],
    [
      'a file ends before its tests',
      `test('a', () => {}); test('b', () => process.exit(0))`,
      // The process took the result of the first one with it.
      '0 passed, 1 failed, 0 skipped',
      /ended before its tests did/,
    ],
    ['a file cannot be loaded', `throw new Error('boom')`, '0 passed, 1 failed, 0 skipped', /Error: boom/],
    [
      'a hook fails',
      `import { after } from 'node:test'; test('a', () => {}); after(() => { throw new Error('late') })`,
      '1 passed, 1 failed, 0 skipped',
      /late/,
    ],
  ]
  for (const [what, body, expected, output] of failing) {
    test(`fails when ${what}`, () => {
      const ended = runTests(testFile(body))
      assert.equal(ended.code, 1, ended.output)
      assert.equal(ended.last, expected, ended.output)
      assert.match(ended.output, output)
    })
  }

  test('runs several files with one PostgreSQL, which is gone afterwards', () => {
    const body = `import { existsSync } from 'node:fs'
      test('a', () => { console.log('URL ' + process.env.TIDEMARK_TEST_PG); assert.fail('to see the output') })`
    const { output } = runTests(testFile(body), testFile(body))
    const urls = [...output.matchAll(/URL (postgres:\/\/\S+)/g)].map((match) => match[1]!)
    assert.equal(urls.length, 2)
    assert.equal(urls[0], urls[1])
    const probe = `import { connect } from 'node:net'
      connect(${new URL(urls[0]!).port}, '127.0.0.1').on('error', (e) => console.log(e.code))`
    const { stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', probe], { encoding: 'utf8' })
    assert.equal(stdout, 'ECONNREFUSED\n')
  })

  test('lets files write to memory where there is some, but those of the file sync to the disk, and removes it', () => {
    const body = `import { tmpdir } from 'node:os'
      test('a', () => { console.log('WRITES TO ' + tmpdir()); assert.fail('to see the output') })`
    const placed = (name: string): string => {
      const path = join(folder, name)
      mkdirSync(dirname(path), { recursive: true })
      copyFileSync(testFile(body), path)
      const { output } = runTests(path)
      return /WRITES TO (.*)/.exec(output)![1]!
    }
    assert.equal(placed('src/apps/files/a.test.ts'), tmpdir())
    const other = placed('src/apps/mail/a.test.ts')
    const memory = memoryFolder()
    memory?.remove()
    assert.equal(dirname(other), memory ? dirname(memory.path) : dirname(tmpdir()))
    assert.equal(existsSync(other), memory === undefined)
  })

  test('refuses to tell what has changed since a place that does not exist', () => {
    const { code, output } = runTests('--changed', 'no-such-branch')
    assert.equal(code, 2)
    assert.match(output, /What differs from no-such-branch cannot be told/)
  })

  test('refuses a path that does not exist', () => {
    const { code, output } = runTests(join(folder, 'none.test.ts'))
    assert.equal(code, 2)
    assert.match(output, /There is no .*none\.test\.ts/)
  })
})

describe('nothing is left', () => {
  test('of a run that is interrupted, which fails', async () => {
    const file = testFile(`test('a', () => new Promise((resolve) => setInterval(resolve, 2 ** 30)))`)
    const runner = spawn(process.execPath, [RUNNER, file], {
      env: cleanEnvironment(),
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    let output = ''
    runner.stdout.setEncoding('utf8').on('data', (text: string) => {
      if (!output.includes('== tests\n') && (output + text).includes('== tests\n')) runner.kill('SIGTERM')
      output += text
    })
    const [code] = (await once(runner, 'close')) as [number | null]
    assert.equal(code, 1)
    assert.match(output, /failed: run › interrupted/)
    assert.match(output, /0 passed, \d failed, 0 skipped\n$/)
  })

  test('of a process that a test forgot, and the run fails', async () => {
    const { code, output } = runTests(
      testFile(`import { spawn } from 'node:child_process'
        test('a', () => {
          spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)', 'forgotten'], { detached: true, stdio: 'ignore' }).unref()
        })`),
    )
    // Only Linux tells what belongs to a run.
    if (process.platform === 'linux') {
      assert.equal(code, 1)
      const pid = Number(/left a process behind, now ended: (\d+) .*forgotten/.exec(output)?.[1])
      while (isRunning(pid)) await sleep(20)
    }
  })

  test('of a file of which nothing is heard any more', () => {
    const file = testFile(`test('a', () => {}); setInterval(() => {}, 1000)`)
    const program = `
      const { runFile } = await import(${JSON.stringify(join(import.meta.dirname, 'test-file.ts'))})
      const tally = await runFile({ file: ${JSON.stringify(file)}, silenceMs: 1500, signal: new AbortController().signal })
      console.log(JSON.stringify(tally.failures.map(({ title }) => title)))`
    const script = join(folder, 'limit.mjs')
    writeFileSync(script, program)
    const { stdout } = spawnSync(process.execPath, [script], { encoding: 'utf8', env: cleanEnvironment() })
    assert.match(stdout, /nothing was heard of the file for 1\.5 s/)
  })
})
