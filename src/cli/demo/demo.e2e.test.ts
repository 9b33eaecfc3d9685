/** `tidemark demo`: what `npm start` runs. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { setTimeout as pass } from 'node:timers/promises'
import { apps } from '../../apps/registry.ts'
import { withToken } from '../../server/server.suite.ts'
import { Processes, type Ready, type Run, tokenIn } from '../serve/serve.suite.ts'

const ROOT = join(import.meta.dirname, '..', '..', '..')
const MESSAGES = 150
/** From here on two messages of the simulated mailbox can never be read. */
const MESSAGES_WITH_BAD = 1_000
const BALANCED =
  /Everything is settled: ([\d,]+) listed = ([\d,]+) stored \+ ([\d,]+) gone \+ ([\d,]+) skipped \+ ([\d,]+) bad\./

/** What nobody announced is listed, what came twice is there once, and of what is broken only that is bad. */
const INGESTED =
  /demo-bucket: bucket lists 9 = 8 stored \+ 0 skipped \+ 1 bad \+ 0 on their way\. demo-folder: /

const processes = new Processes()
after(() => processes.close())

function booksOf(stdout: string): number[] {
  const found = BALANCED.exec(stdout)
  assert.ok(found, stdout)
  return found.slice(1).map((text) => Number(text.replaceAll(',', '')))
}

function demo(home: string, ...args: string[]): Run {
  return processes.start(['--home', home, 'demo', '--port', '0', '--fast', ...args])
}

type FolderView = { root: string; files: number; heardAt: number | null }

async function until<Value>(look: () => Promise<Value | undefined | false>): Promise<Value> {
  for (;;) {
    const seen = await look()
    if (seen) return seen
    await pass(50)
  }
}

async function storedAt({ url, home }: Ready): Promise<number> {
  const answer = await fetch(`${url}/api/overview`, withToken({}, tokenIn(home)))
  const { streams } = (await answer.json()) as {
    streams: { name: string; counts?: { stored: number }; stored?: number }[]
  }
  const stream = streams.find(({ name }) => name.startsWith('mail:'))
  return stream?.counts?.stored ?? stream?.stored ?? 0
}

/** Letters to the assistant that are there from the beginning. */
const FIRST_LETTERS = 4
const SORTED = /inbox (\d+) = \1 classified \+ 0 skipped \+ 0 on their way/

/** Besides the mailbox and its letters there are drafts of the assistant, of which some are replaced. */
function assertBooks(stdout: string, { least, bad }: { least: number; bad: number }): void {
  const [listed = 0, stored = 0, gone = 0, ...rest] = booksOf(stdout)
  assert.deepEqual(rest, [0, bad], stdout)
  assert.equal(listed, stored + gone + bad, stdout)
  assert.ok(listed >= least && stored + bad >= least, stdout)
}

describe('tidemark demo', () => {
  test('npm start -- --once ends with 0 and books that balance, leaves nothing behind, and the environment alone', async () => {
    const other = join(processes.folder, 'other')
    const env = {
      ...process.env,
      TMPDIR: processes.folder,
      TIDEMARK_HOME: other,
      TIDEMARK_LEDGER_URL: 'postgres://nobody@127.0.0.1:1/none',
    }
    const args = ['start', '--', '--once', '--fast', '--port', '0', '--messages', String(MESSAGES_WITH_BAD)]
    const child = spawn('npm', args, { cwd: ROOT, env, stdio: ['ignore', 'pipe', 'inherit'] })
    let stdout = ''
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      stdout += text
    })
    const [code] = (await once(child, 'close')) as [number | null]
    assert.equal(code, 0, stdout)
    assert.match(stdout, /Tidemark is at http:\/\/127\.0\.0\.1:\d+\/sign-in#\S+\n/)
    assertBooks(stdout, { least: MESSAGES_WITH_BAD + FIRST_LETTERS, bad: 2 })
    assert.match(stdout, INGESTED)
    assert.match(stdout, SORTED)
    assert.deepEqual(
      readdirSync(processes.folder).filter((name) => name.startsWith('tidemark-demo-')),
      [],
    )
    assert.ok(!existsSync(other))
  })

  test('tells programs of each app, on the way and in the books; a journal that cannot be read ends the next one with 1', async () => {
    const home = join(processes.folder, 'told')
    const run = demo(home, '--once', '--json', '--messages', '60')
    assert.equal(await run.ended, 0, run.stderr())
    const lines = run
      .stdout()
      .trim()
      .split('\n')
      .map(
        (line) =>
          JSON.parse(line) as {
            type: string
            mail?: { stored: number }
            files?: { name: string }
            ingest?: { pipelines: { records: number; quarantined: number }[] }
            assist?: { inbox: number; classified: number; draftsWaiting: number }
          },
      )
    // How often it tells of its way depends on how long that takes.
    const types = new Set(lines.map(({ type }) => type))
    const known = new Set(['ready', 'progress', 'summary', ...apps.map(({ name }) => name)])
    assert.deepEqual([...types.difference(known)], [])
    const { mail, files, ingest, assist } = lines.at(-1)!
    assert.ok(mail!.stored >= 60 + FIRST_LETTERS)
    assert.equal(files?.name, 'OneDrive')
    assert.ok(assist!.inbox >= FIRST_LETTERS && assist!.classified === assist!.inbox)
    assert.ok(assist!.draftsWaiting >= 1)
    assert.deepEqual(
      ingest?.pipelines.map(({ quarantined }) => quarantined),
      [1, 0],
    )
    assert.ok(ingest.pipelines.every(({ records }) => records > 0))

    rmSync(join(home, 'demo-arrivals.jsonl'), { force: true })
    mkdirSync(join(home, 'demo-arrivals.jsonl'))
    const unreadable = demo(home, '--once')
    assert.equal(await unreadable.ended, 1, unreadable.stdout())
    assert.match(unreadable.stderr(), /EISDIR/)
  })

  test('killed with -9 twice and started again with the same home, it finishes', async () => {
    const home = join(processes.folder, 'killed')
    for (const share of [0.1, 0.4]) {
      const run = demo(home, '--once', '--json', '--messages', String(MESSAGES))
      const ready = await run.ready
      while ((await storedAt(ready).catch(() => MESSAGES)) < MESSAGES * share) await pass(5)
      run.child.kill('SIGKILL')
      assert.equal(await run.ended, null, run.stdout())
    }
    const last = demo(home, '--once')
    assert.equal(await last.ended, 0, last.stderr())
    assert.match(last.stdout(), /It goes on in .*killed where it was/)
    assertBooks(last.stdout(), { least: MESSAGES + FIRST_LETTERS, bad: 0 })
    assert.match(last.stdout(), INGESTED)
    assert.match(last.stdout(), SORTED)
  })

  test('mail keeps arriving, a folder is kept in step with a OneDrive that is alive, and all is there again after a kill', async () => {
    const home = join(processes.folder, 'alive')
    const run = demo(home, '--json', '--messages', '50')
    const ready = await run.ready
    const { url } = ready
    const folder = await until(async () => {
      const { items } = (await (
        await fetch(`${url}/api/files/folders`, withToken({}, tokenIn(home)))
      ).json()) as { items: FolderView[] }
      return items.find(({ files, heardAt }) => files >= 35 && heardAt !== null)
    })
    assert.equal(folder.root, join(realpathSync(home), 'OneDrive'))
    // The other device takes texts alone: on a slow machine it comes to rename or delete any of them.
    writeFileSync(join(folder.root, 'made by me.csv'), 'kept')
    const journal = (): string =>
      existsSync(join(home, 'demo-drive.jsonl')) ? readFileSync(join(home, 'demo-drive.jsonl'), 'utf8') : ''
    await until(async () => journal().includes('made by me.csv'))
    await until(async () => journal().split('\n').length > 4)
    while ((await storedAt(ready)) < 52 + FIRST_LETTERS) await pass(50)
    run.child.kill('SIGKILL')
    await run.ended
    const linesOf = (file: string): number => readFileSync(join(home, file), 'utf8').trim().split('\n').length
    const arrived = linesOf('demo-arrivals.jsonl') + linesOf('demo-letters.jsonl')
    const last = demo(home, '--once')
    assert.equal(await last.ended, 0, last.stderr())
    assertBooks(last.stdout(), { least: 50 + arrived, bad: 0 })
    assert.match(last.stdout(), /OneDrive: \d+ files, [\d.]+ MB on both sides\. (?:In step|1 conflict)/)
    assert.equal(readFileSync(join(folder.root, 'made by me.csv'), 'utf8'), 'kept')
    assert.ok(existsSync(join(folder.root, 'Videos', 'Garden in May.mov')))
  })

  test('a second one in the same folder is refused; the first goes on, and Ctrl-C in the middle ends it with 0', async () => {
    const home = join(processes.folder, 'twice')
    const first = demo(home, '--json', '--messages', String(MESSAGES_WITH_BAD))
    const ready = await first.ready
    const config = readFileSync(join(home, 'config.toml'), 'utf8')
    const second = demo(home, '--once')
    assert.equal(await second.ended, 2)
    assert.match(second.stderr(), /A demo runs in .*twice already \(process \d+\)[\s\S]*--home/)
    assert.equal(readFileSync(join(home, 'config.toml'), 'utf8'), config)
    const before = await storedAt(ready)
    while ((await storedAt(ready)) <= before) await pass(5)
    first.child.kill('SIGINT')
    assert.equal(await first.ended, 0, first.stderr())
    assert.deepEqual(
      readdirSync(home).filter((name) => name.includes('lock')),
      [],
    )
  })

  test('a folder that holds something else is left alone', async () => {
    const home = join(processes.folder, 'real')
    mkdirSync(home)
    writeFileSync(join(home, 'ledger.db'), 'something')
    const refused = demo(home, '--once')
    assert.equal(await refused.ended, 2)
    assert.match(refused.stderr(), /holds something else than a demo/)
    assert.deepEqual(readdirSync(home), ['ledger.db'])
  })
})
