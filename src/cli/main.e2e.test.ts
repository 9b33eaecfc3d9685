/** The real launcher, as a child process. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { pathToFileURL } from 'node:url'
import packageJson from '../../package.json' with { type: 'json' }
import { catalog } from '../apps/catalog.ts'
import { runCommand } from './main.ts'

const ROOT = join(import.meta.dirname, '..', '..')
const BIN = join(ROOT, 'bin', 'tidemark')
/** There are 60 with two apps; each brings three or four. */
const MODULES_MAX = 90

const folder = mkdtempSync(join(tmpdir(), 'tidemark-cli-'))
after(() => rmSync(folder, { recursive: true, force: true }))

type Ended = { code: number | null; stdout: string; stderr: string }

function run(program: string, args: string[], env: Record<string, string> = {}, input = ''): Ended {
  const clean = { PATH: process.env.PATH ?? '', HOME: folder, ...env }
  const { status, stdout, stderr, error } = spawnSync(program, args, { encoding: 'utf8', env: clean, input })
  if (error) throw error
  return { code: status, stdout, stderr }
}

function tidemark(...args: string[]): Ended {
  return run(BIN, args)
}

function homeWith(toml: string): string {
  const home = mkdtempSync(join(folder, 'home-'))
  writeFileSync(join(home, 'config.toml'), toml)
  return home
}

describe('the command line', () => {
  test('prints its help', () => {
    const { code, stdout, stderr } = tidemark('--help')
    assert.equal(code, 0)
    assert.match(stdout, /^Usage: tidemark /)
    assert.match(stdout, /config +show the configuration/)
    assert.match(stdout, /--home <folder>/)
    assert.equal(stderr, '')
  })

  test('help loads the parser, what declares commands, and nothing heavy', () => {
    const list = join(folder, 'list-modules.mjs')
    writeFileSync(
      list,
      `import { registerHooks } from 'node:module'
       registerHooks({ resolve(specifier, context, next) {
         const found = next(specifier, context)
         process.stderr.write(found.url + '\\n')
         return found
       } })`,
    )
    const root = `${pathToFileURL(ROOT).href}/`
    for (const args of [['--help'], ['mail', '--help'], ['files', 'sync', '--help']]) {
      const { code, stderr } = run(BIN, args, { NODE_OPTIONS: `--import ${pathToFileURL(list).href}` })
      assert.equal(code, 0)
      const modules = [...new Set(stderr.trim().split('\n'))].map((url) => url.replace(root, ''))
      const packages = modules.flatMap((path) => /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)?.[1] ?? [])
      assert.deepEqual([...new Set(packages)], ['commander'])
      assert.ok(modules.includes('src/apps/mail/app.ts'), 'modules are listed')
      const heavy =
        /^node:(?:sqlite|http|https|worker_threads|crypto|zlib)$|^src\/(?:server|runtime|engine|cloud\/\w+\/|ledger\/\w+\/)/
      assert.deepEqual(
        modules.filter((path) => heavy.test(path)),
        [],
      )
      assert.ok(modules.length < MODULES_MAX, `${modules.length} modules`)
    }
  })

  test('prints its version', () => {
    assert.deepEqual(tidemark('--version'), {
      code: 0,
      stdout: `tidemark ${packageJson.version}\n`,
      stderr: '',
    })
  })

  test('without a command, and with a noun alone, prints what there is and ends with 2', () => {
    for (const args of [[], ['config']]) {
      const { code, stdout, stderr } = tidemark(...args)
      assert.equal(code, 2)
      assert.equal(stdout, '')
      assert.match(stderr, /^Usage: tidemark/)
    }
  })

  const mistakes: [what: string, args: string[], stderr: RegExp][] = [
    ['a misspelt noun', ['confg'], /^tidemark: unknown command 'confg'\n {2}Did you mean config\?\n$/],
    ['a misspelt verb', ['config', 'shwo'], /^tidemark: unknown command 'shwo'\n {2}Did you mean show\?\n$/],
    [
      'a misspelt flag',
      ['config', 'show', '--orgin', 'env'],
      /unknown option '--orgin'\n {2}Did you mean --origin\?/,
    ],
    [
      'a query that begins with a minus',
      ['mail', 'search', '-in:inbox'],
      /unknown option '-in:inbox'\n {2}What begins with a minus and is no option goes behind --/,
    ],
    ['a flag without its value', ['--home'], /option '--home <folder>' argument missing/],
    [
      'a value that is not allowed',
      ['config', 'show', '--origin', 'moon'],
      /Allowed choices are default, file, env, flag/,
    ],
    ['too many words', ['config', 'path', 'x'], /too many arguments/],
  ]
  for (const [what, args, expected] of mistakes) {
    test(`answers ${what} with a hint and ends with 2`, () => {
      const { code, stdout, stderr } = tidemark(...args)
      assert.equal(code, 2)
      assert.equal(stdout, '')
      assert.match(stderr, expected)
    })
  }

  test('prints errors without a stack, with one under --debug, and as JSON under --json', () => {
    const args = ['config', 'show', '--config', join(folder, 'none.toml')]
    const plain = tidemark(...args)
    assert.equal(plain.code, 2)
    assert.match(
      plain.stderr,
      /^tidemark: cannot read the configuration file .*none\.toml: there is no such file\n {2}Check/,
    )
    assert.doesNotMatch(plain.stderr, /\n\s+at /)
    assert.match(tidemark(...args, '--debug').stderr, /\n\s+at .*\ncaused by /s)
    const json = JSON.parse(tidemark(...args, '--json').stderr) as { error: { message: string } }
    assert.match(json.error.message, /there is no such file/)
  })

  test('shows what a file holds without letting it reach the terminal', () => {
    const home = homeWith('[log]\n"\\u001b[2Jx" = 1\n')
    const { code, stderr } = tidemark('config', 'show', '--home', home)
    assert.equal(code, 2)
    assert.match(stderr, /unknown key log\.\\u001b\[2Jx/)
  })
})

describe('config set', () => {
  const set = (home: string, words: string[], input?: string): Ended =>
    run(BIN, ['config', 'set', ...words, '--home', home], {}, input)
  const file = (home: string): string => readFileSync(join(home, 'config.toml'), 'utf8')

  test('takes a secret from standard input, and refuses it as an argument', () => {
    const home = homeWith('')
    for (const words of [
      ['gmail.client_secret', 'GOCSPX-s3cret'],
      ['ledger.url', 'postgres://ann:s3cret@db/tide'],
      ['ledger.token', 's3cret'],
      ['alerts.webhook_url', 'https://chat.example.com/hooks/s3cret'],
    ]) {
      const { code, stdout, stderr } = set(home, words)
      assert.equal(code, 2)
      assert.match(
        stderr,
        /is a secret, which must not be an argument[\s\S]*standard input: tidemark config set/,
      )
      assert.doesNotMatch(stdout + stderr, /s3cret/)
    }
    assert.equal(file(home), '')
    const { code, stdout, stderr } = set(home, ['gmail.client_secret', '-'], 'GOCSPX-s3cret\n')
    assert.equal(code, 0, stderr)
    assert.doesNotMatch(stdout + stderr, /s3cret/)
    assert.equal(file(home), '[gmail]\nclient_secret = "GOCSPX-s3cret"\n')
    assert.equal(set(home, ['ledger.url', 'sqlite:mine.db']).code, 0, 'no password in it')
  })

  test('needs a value, and changes nothing without', () => {
    const home = homeWith('')
    for (const words of [['engine.workers'], ['ledger.token'], ['ledger.token', '-']]) {
      const { code, stderr } = set(home, words)
      assert.equal(code, 2)
      assert.match(stderr, /needs a value|No value/)
    }
    assert.equal(file(home), '')
  })

  test('of a broken file shows the place and no line', () => {
    const home = homeWith('[ledger]\ntoken = "s3cret\n')
    const { code, stdout, stderr } = set(home, ['engine.workers', '4', '--debug'])
    assert.equal(code, 2)
    assert.match(stderr, /config\.toml:2:\d+: not valid TOML/)
    assert.doesNotMatch(stdout + stderr, /s3cret/)
  })
})

describe('config show', () => {
  const home = homeWith('[engine]\nworkers = 4\n[ledger]\nurl = "postgres://ann:s3cret@db/tide"\n')

  test('prints every value and where it came from, and no password', () => {
    const env = { TIDEMARK_HOME: home, TIDEMARK_LOG_LEVEL: 'debug' }
    const { code, stdout } = run(BIN, ['config', 'show'], env)
    assert.equal(code, 0)
    const lines = stdout.trimEnd().split('\n')
    assert.equal(lines.length, 1 + catalog.entries.length, 'a heading, and every setting')
    assert.ok(lines.includes(`engine.workers\t4\t${home}/config.toml:2`))
    assert.ok(lines.includes(`ledger.url\tpostgres://ann:***@db/tide\t${home}/config.toml:4`))
    assert.ok(lines.includes('log.level\tdebug\tenv TIDEMARK_LOG_LEVEL'))
    assert.ok(lines.includes('engine.bulk_bytes\t10MB\tdefault'))
  })

  test('prints only what came from a given place', () => {
    const { stdout } = tidemark('config', 'show', '--home', home, '--origin', 'file')
    assert.deepEqual(
      stdout.split('\n').map((line) => line.split('\t')[0]),
      ['KEY', 'ledger.url', 'engine.workers', ''],
    )
  })

  test('prints JSON for programs, before and after the command', () => {
    for (const args of [
      ['--json', 'config', 'show', '--home', home],
      ['config', 'show', '--home', home, '--json'],
    ]) {
      const { stdout } = tidemark(...args)
      const { settings, home: shown } = JSON.parse(stdout) as {
        home: unknown
        settings: { key: string; value: unknown; origin: unknown }[]
      }
      assert.deepEqual(shown, { path: home, origin: { kind: 'flag', name: '--home' } })
      const workers = settings.find(({ key }) => key === 'engine.workers')
      assert.deepEqual(workers, {
        key: 'engine.workers',
        value: 4,
        origin: { kind: 'file', path: join(home, 'config.toml'), line: 2 },
      })
      assert.doesNotMatch(stdout, /s3cret/)
    }
  })

  test('ends with 2 and the nearest key when one is unknown', () => {
    const wrong = homeWith('[engine]\nworker = 4\n')
    const { code, stderr } = tidemark('config', 'show', '--home', wrong)
    assert.equal(code, 2)
    assert.match(
      stderr,
      /config\.toml:2: unknown key engine\.worker; did you mean engine\.workers\?\n {2}See all keys/,
    )
  })

  test('ends with 2 when a variable is unknown', () => {
    const { code, stderr } = run(BIN, ['config', 'show'], { TIDEMARK_ENGINE_WORKRES: '8' })
    assert.equal(code, 2)
    assert.match(stderr, /did you mean TIDEMARK_ENGINE_WORKERS\?/)
  })
})

describe('config path and config keys', () => {
  test('answer also when the file is broken', () => {
    const home = homeWith('[[[')
    assert.equal(tidemark('config', 'path', '--home', home).stdout, `${home}/config.toml\n`)
    const { code, stdout } = tidemark('config', 'keys', '--home', home)
    assert.equal(code, 0)
    assert.match(stdout, /engine\.workers\t.*\ta whole number from 1 to 1024\tTIDEMARK_ENGINE_WORKERS/)
  })

  test('say whether the file exists', () => {
    const { stdout } = tidemark('config', 'path', '--json')
    const home = join(folder, '.local', 'share', 'tidemark')
    assert.deepEqual(JSON.parse(stdout), { path: join(home, 'config.toml'), exists: false, home })
  })
})

describe('completion', () => {
  for (const shell of ['bash', 'zsh', 'fish', 'powershell']) {
    test(`prints a script for ${shell}`, () => {
      const { code, stdout } = tidemark('completion', shell)
      assert.equal(code, 0)
      assert.ok(/tidemark[\s\S]*complete (?:--|'--') /.test(stdout))
    })
  }

  test('refuses another shell and says which there are', () => {
    const { code, stderr } = tidemark('completion', 'csh')
    assert.equal(code, 2)
    assert.match(stderr, /bash, zsh, fish, powershell/)
  })

  function suggestions(...words: string[]): string[] {
    const lines = tidemark('complete', '--', ...words)
      .stdout.trimEnd()
      .split('\n')
    return lines.filter((line) => !line.startsWith(':')).map((line) => line.split('\t')[0]!)
  }

  test('suggests nouns, verbs, flags of the command and of the program, and values', () => {
    assert.deepEqual(suggestions('conf'), ['config'])
    assert.ok(suggestions('').includes('completion'))
    assert.deepEqual(suggestions('config', 's'), ['show', 'set'])
    assert.deepEqual(suggestions('config', 'show', '--o'), ['--origin'])
    assert.deepEqual(suggestions('config', 'show', '--j'), ['--json'])
    assert.deepEqual(suggestions('config', 'show', '--origin', 'f'), ['file', 'flag'])
    assert.deepEqual(suggestions('completion', 'z'), ['zsh'])
    assert.deepEqual(suggestions('mail', 'clean'), ['clean', 'clean-undo', 'clean-runs'])
    assert.deepEqual(suggestions('mail', 'archive'), [], 'names that verbs had before are offered nowhere')
  })

  test('works in a bash that has nothing else installed, and runs nothing that was typed', () => {
    const bin = mkdtempSync(join(folder, 'bin-'))
    symlinkSync(BIN, join(bin, 'tidemark'))
    const script = `
      source <(tidemark completion bash)
      COMP_WORDS=(tidemark config sh); COMP_CWORD=2; _tidemark_complete; echo "\${COMPREPLY[@]}"
      COMP_WORDS=(tidemark '$(touch ${bin}/ran)' ''); _tidemark_complete; ls ${bin}`
    const env = { PATH: `${bin}:${process.env.PATH}` }
    assert.deepEqual(run('bash', ['--norc', '-c', script], env), {
      code: 0,
      stdout: 'show\ntidemark\n',
      stderr: '',
    })
  })
})

describe('a command that a person is told to run', () => {
  const launcher = '/opt/tide mark/bin/tidemark'
  async function told(env: Record<string, string>, { isTTY }: { isTTY: boolean }): Promise<string> {
    let stderr = ''
    const input = { args: ['jobs', 'show', '1'], env: { HOME: folder, ...env }, launcher }
    const write = (text: string | Uint8Array): void => {
      stderr += String(text)
    }
    await runCommand({ ...input, stdout: { write() {} }, stderr: { write, isTTY } })
    return stderr
  }

  test('is followed by where it is, for a person whose shell does not find it, and for nobody else', async () => {
    const bin = mkdtempSync(join(folder, 'path-'))
    symlinkSync(BIN, join(bin, 'tidemark'))
    const home = { TIDEMARK_HOME: join(folder, 'no-such-home') }
    const config = { ...home, TIDEMARK_ENGINE_WORKERS: 'many' }
    const where = /export PATH="\/opt\/tide mark\/bin:\$PATH"/
    assert.match(await told({ ...config, PATH: '/usr/bin' }, { isTTY: true }), where)
    assert.doesNotMatch(await told({ ...config, PATH: `/usr/bin:${bin}` }, { isTTY: true }), where)
    assert.doesNotMatch(await told({ ...config, PATH: '/usr/bin' }, { isTTY: false }), where)
  })

  test('completes in shells that do not find the program, by where it is', () => {
    const { stdout } = run(BIN, ['completion', 'zsh'], { PATH: '/usr/bin:/bin' })
    assert.ok(stdout.includes(BIN), stdout.slice(0, 400))
  })
})

describe('the launcher', () => {
  test('follows links, also relative ones', () => {
    const bin = mkdtempSync(join(folder, 'link-'))
    symlinkSync(BIN, join(bin, 'first'))
    symlinkSync('first', join(bin, 'second'))
    assert.equal(run(join(bin, 'second'), ['--version']).stdout, `tidemark ${packageJson.version}\n`)
  })

  test('says what to do when its packages are missing', () => {
    const checkout = mkdtempSync(join(folder, 'bare-'))
    cpSync(join(ROOT, 'bin'), join(checkout, 'bin'), { recursive: true })
    const { code, stderr } = run(join(checkout, 'bin', 'tidemark'), ['--version'])
    assert.equal(code, 1)
    assert.equal(stderr, `tidemark: its packages are missing. Run npm install in ${checkout}\n`)
  })

  test('says what to do when there is no Node at all', () => {
    const checkout = mkdtempSync(join(folder, 'nodeless-'))
    cpSync(join(ROOT, 'bin'), join(checkout, 'bin'), { recursive: true })
    mkdirSync(join(checkout, 'node_modules'))
    const tools = mkdtempSync(join(folder, 'tools-'))
    symlinkSync(run('sh', ['-c', 'command -v dirname']).stdout.trim(), join(tools, 'dirname'))
    const { code, stderr } = run(join(checkout, 'bin', 'tidemark'), ['--version'], { PATH: tools })
    assert.equal(code, 1)
    assert.match(stderr, /there is no Node\.js/)
  })

  test('says what to do when Node is too old', () => {
    const older = "Object.defineProperty(process, 'versions', { value: { node: '20.11.0' } })"
    const args = [
      '--import',
      `data:text/javascript,${encodeURIComponent(older)}`,
      join(ROOT, 'bin', 'tidemark.js'),
    ]
    const { code, stderr } = run(process.execPath, args)
    assert.equal(code, 1)
    assert.match(stderr, /^tidemark: Node 20\.11\.0 is too old, 24 or later is needed\. Run npm install in /)
  })
})

test('a reader that has seen enough is no error', () => {
  const script = `'${BIN}' config keys | head -n 1; echo "\${PIPESTATUS[0]}"`
  assert.deepEqual(run('bash', ['-c', script]).stdout.split('\n').slice(1), ['0', ''])
})
