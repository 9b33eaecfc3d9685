/** What the documents say is run: the example, every command, every program. */
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { after, describe, test } from 'node:test'
import type { Command } from 'commander'
import packageJson from '../package.json' with { type: 'json' }
import { createContext } from '../src/cli/context.ts'
import { Output } from '../src/cli/output/output.ts'
import { buildProgram } from '../src/cli/program.ts'
import { blocksText, commandsOf, readChapters } from './document-blocks.ts'

const ROOT = join(import.meta.dirname, '..')
const START = join(ROOT, 'examples', 'start.ts')
const README_HOME = '/tmp/tidemark-try'
/** Several times faster than a person would want to watch. */
const FAST = ['--speed', '5']

const folder = mkdtempSync(join(tmpdir(), 'tidemark-examples-'))
after(() => rmSync(folder, { recursive: true, force: true }))

type Ended = { code: number | null; stdout: string; stderr: string }

const RUN_MS_MAX = 240_000

async function run(program: string, args: readonly string[], cwd = ROOT): Promise<Ended> {
  const child = spawn(program, args, {
    cwd,
    // As the README sets it up.
    env: { ...process.env, TMPDIR: folder, PATH: `${join(ROOT, 'bin')}:${process.env.PATH}` },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: RUN_MS_MAX,
  })
  const printed = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8').on('data', (text: string) => {
      printed[name] += text
    })
  }
  const [code] = (await once(child, 'close')) as [number | null]
  return { code, ...printed }
}

/** The lines in which the example adds up its books. */
function booksOf(stdout: string): string[] {
  const lines = stdout.split('\n')
  const from = lines.findIndex((line) => line.startsWith('mailbox '))
  return lines.slice(from, lines.findIndex((line) => line.startsWith('rows in the table')) + 1)
}

const BOOKS = [
  'mailbox   listed = stored + gone + skipped + bad   mark',
  'ada          240 =    227 +    6 +       6 +   1   2026-06',
  'ben           90 =     77 +    6 +       6 +   1   2026-06',
  'cleo          30 =     30 +    0 +       0 +   0   2026-06',
  'all          360 =    334 +   12 +      12 +   2',
  'rows in the table of letters: 334',
]

/** Starts the example and waits until it has accounted for some letters, but not for all. */
async function startAndWait(home: string): Promise<{ child: ChildProcess; ended: Promise<Ended> }> {
  const child = spawn(process.execPath, [START, '--home', home], { stdio: ['ignore', 'pipe', 'inherit'] })
  let stdout = ''
  const someDone = new Promise<void>((resolve) => {
    child.stdout!.setEncoding('utf8').on('data', (text: string) => {
      stdout += text
      if (/ [1-9]\d*\/\d+/.test(stdout)) resolve()
    })
  })
  const ended = once(child, 'close').then(([code]) => ({ code: code as number | null, stdout, stderr: '' }))
  await Promise.race([someDone, ended])
  return { child, ended }
}

describe('npm run example', () => {
  test('ends by itself with books that balance', async () => {
    const { code, stdout } = await run('npm', ['run', 'example'])
    assert.equal(code, 0, stdout)
    assert.deepEqual(booksOf(stdout), BOOKS)
    assert.match(stdout, /ada\/2026-02\/17: a letter of this call is damaged/)
  })

  test('stopped by Ctrl-C, it ends with 0, and the next start goes on to the same end', async () => {
    const home = join(folder, 'interrupted')
    const { child, ended } = await startAndWait(home)
    child.kill('SIGINT')
    const first = await ended
    assert.equal(first.code, 0)
    assert.match(first.stdout, /Stopped; nothing is lost\. To go on: npm run example -- --home /)
    const second = await run(process.execPath, [START, '--home', home, ...FAST])
    assert.equal(second.code, 0, second.stdout)
    assert.match(second.stdout, /^Going on with the ledger/)
    assert.deepEqual(booksOf(second.stdout), BOOKS)
  })

  test('killed with -9, the next start goes on to the same end', async () => {
    const home = join(folder, 'killed')
    const { child, ended } = await startAndWait(home)
    child.kill('SIGKILL')
    assert.equal((await ended).code, null)
    const second = await run(process.execPath, [START, '--home', home, ...FAST])
    assert.equal(second.code, 0, second.stdout)
    assert.deepEqual(booksOf(second.stdout), BOOKS)
  })

  test('answers a wrong option with a sentence and ends with 1', async () => {
    const { code, stderr } = await run(process.execPath, [START, '--speed', 'x'])
    assert.deepEqual([code, stderr], [1, '--speed must be a number above 0, not x.\n'])
  })
})

const DOCUMENTS = [
  'README.md',
  'CONTRIBUTING.md',
  'docs/architecture.md',
  'docs/states.md',
  'docs/engine.md',
  'docs/cli.md',
]

/** Commands that change the source. */
const NOT_RUN: Record<string, string> = { 'npm run format': 'format' }

/** Runs at length: one that nothing here stands in for would hold up the suite until it is ended as silent. */
const LONG_RUN = /^npm run (?:crash|oracle|bench|shots|fidelity)\b/

/** Commands that are not run here, and what runs them instead. */
const RUN_ELSEWHERE: Record<string, string> = {
  'npm install': '.ci/run',
  'npm start': 'src/cli/demo/demo.e2e.test.ts',
  'export PATH="$PWD/bin:$PATH"': 'src/cli/main.e2e.test.ts',
  'npm install && npm start': 'src/cli/demo/demo.e2e.test.ts',
  'npm start -- --once': 'src/cli/demo/demo.e2e.test.ts',
  'npm install && npm test': '.ci/run',
  'npm test -- src/ledger': 'scripts/test.e2e.test.ts',
  'npm test -- --changed': 'scripts/test-selection.test.ts',
  'npm run lint': 'scripts/test.ts',
  'npm run types': 'scripts/test.ts',
  'npm run lint && npm run types': 'scripts/test.ts',
  'npm run crash': 'e2e/crash/crash.e2e.test.ts',
  'npm run crash:mail': 'e2e/mail/sync.e2e.test.ts',
  'npm run oracle -- files': 'e2e/files/oracle.e2e.test.ts',
  'npm run oracle -- watch': 'e2e/files/watch.e2e.test.ts',
  'npm run oracle -- drive': 'src/apps/drive/access-oracle.test.ts',
  'npm run oracle -- ingest': 'e2e/ingest/oracle.e2e.test.ts',
  'npm run oracle -- assistant': 'e2e/assistant/oracle.e2e.test.ts',
  'npm run bench -- engine': 'bench/run.test.ts',
  'npm run bench -- mail': 'bench/run.test.ts',
  'npm run bench -- search': 'bench/run.test.ts',
  'npm run bench -- ingest': 'bench/run.test.ts',
  'npm run shots': 'e2e/web/overview.e2e.test.ts',
  'npm run fidelity': 'e2e/fidelity/fidelity.e2e.test.ts',
}

describe('the commands in the documents', () => {
  const home = join(folder, 'readme')
  const seen = new Set<string>()
  for (const document of DOCUMENTS) {
    for (const command of commandsOf(readChapters(join(ROOT, document)))) {
      if (seen.has(command)) continue
      seen.add(command)
      const proof = RUN_ELSEWHERE[command]
      if (proof) {
        test(`${command} is run by ${proof}`, () => assert.ok(existsSync(join(ROOT, proof))))
        continue
      }
      const script = NOT_RUN[command]
      if (script) {
        test(`${command} exists`, () => assert.ok(script in packageJson.scripts))
        continue
      }
      test(`${command} works`, async () => {
        assert.doesNotMatch(command, LONG_RUN, 'RUN_ELSEWHERE must name the test that runs this one briefly')
        const [program = '', ...args] = command
          .replace('npm install && ', '')
          .replaceAll(README_HOME, home)
          .split(' ')
        const faster = args[1] === 'example' ? FAST : []
        const { code, stdout, stderr } = await run(program, [...args, ...faster])
        // With two letters isolated as bad, status ends with 3.
        assert.equal(code, args.at(-1) === 'status' ? 3 : 0, stdout + stderr)
        assert.notEqual(stdout, '')
      })
    }
  }

  test('those of .ci/run are the ones of the README', () => {
    const script = readFileSync(join(ROOT, '.ci', 'run'), 'utf8')
    const commands = script.split('\n').filter((line) => /^(?:npm|npx|node|bin\/)/.test(line))
    const explained = commandsOf(readChapters(join(ROOT, 'README.md')))
    assert.ok(commands.length > 0)
    for (const command of commands) assert.ok(explained.includes(command), command)
  })

  test('those of the command line are all described, and no others', () => {
    const output = new Output(process.stdout, process.stderr)
    const program = buildProgram(createContext({ env: {}, output }))
    const offered = leavesOf(program).map((names) => names.join(' '))
    const page = readFileSync(join(ROOT, 'docs', 'cli.md'), 'utf8')
    const described = [...page.matchAll(/^\| `tidemark ([a-z -]+)` \|/gm)].map(([, name]) => name)
    assert.deepEqual(described.sort(), offered.sort())
  })
})

/** The commands that do something, with the nouns before them. */
function leavesOf(command: Command): string[][] {
  // Hidden ones are asked by the completion scripts, or are the names that verbs had before.
  const shown = command.createHelp().visibleCommands(command)
  return shown
    .filter((one) => one.name() !== 'help')
    .flatMap((one) =>
      one.commands.length > 0 ? leavesOf(one).map((names) => [one.name(), ...names]) : [[one.name()]],
    )
}

describe('the programs in the documents', { concurrency: 2 }, () => {
  const programs = join(folder, 'programs')
  // A project that has Tidemark installed from a folder beside it: npm makes such links.
  mkdirSync(join(programs, 'node_modules'), { recursive: true })
  symlinkSync(ROOT, join(programs, 'node_modules', 'tidemark'))
  symlinkSync(join(ROOT, 'node_modules', 'zod'), join(programs, 'node_modules', 'zod'))
  writeFileSync(join(programs, 'package.json'), JSON.stringify({ type: 'module' }))
  const chapters = ['README.md', 'docs/engine.md'].flatMap((document) =>
    readChapters(join(ROOT, document)).flatMap((chapter) => {
      const name = `${document} ${chapter.title}`.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-')
      const code = blocksText(chapter, 'ts')
      if (code === '') return []
      writeFileSync(join(programs, `${name}.ts`), code)
      return [
        { title: `${document}, ${chapter.title}`, file: `${name}.ts`, printed: blocksText(chapter, 'text') },
      ]
    }),
  )

  test('are found', () => assert.ok(chapters.length > 10))

  for (const { title, file, printed } of chapters) {
    test(`${title}: runs, and prints what the page says`, async () => {
      const { code, stdout, stderr } = await run(process.execPath, [file], programs)
      assert.equal(code, 0, stderr)
      assert.equal(stdout, printed)
      assert.equal(stderr, '')
    })
  }

  test('have correct types', async () => {
    const config = {
      extends: join(ROOT, 'tsconfig.json'),
      compilerOptions: { typeRoots: [join(ROOT, 'node_modules', '@types')] },
      include: ['*.ts'],
    }
    writeFileSync(join(programs, 'tsconfig.json'), JSON.stringify(config))
    const tsc = join(ROOT, 'node_modules', 'typescript', 'bin', 'tsc')
    const { code, stdout } = await run(process.execPath, [tsc, '--project', programs])
    assert.equal(code, 0, stdout)
  })
})

describe('the links in the documents', () => {
  for (const path of ['*.md', 'docs/**/*.md', 'bench/*.md']
    .flatMap((glob) => globSync(glob, { cwd: ROOT }))
    .sort()) {
    test(`of ${path} lead somewhere`, () => {
      const text = readFileSync(join(ROOT, path), 'utf8')
      const links = [...text.matchAll(/\]\(([^)\s]+)\)/g)].map(([, link]) => link!)
      for (const link of links.filter((one) => !/^https?:/.test(one))) {
        const [target = '', anchor] = link.split('#')
        const file = target === '' ? join(ROOT, path) : join(ROOT, dirname(path), target)
        assert.ok(existsSync(file), `${link} (${relative(ROOT, file)})`)
        if (anchor) assert.ok(anchorsOf(file).includes(anchor), link)
      }
    })
  }
})

/** As GitHub names them. */
function anchorsOf(file: string): string[] {
  const headings = readFileSync(file, 'utf8').matchAll(/^#+ (.+)$/gm)
  return [...headings].map(([, title]) =>
    title!
      .toLowerCase()
      .replaceAll(/[^\w -]/g, '')
      .replaceAll(' ', '-'),
  )
}
