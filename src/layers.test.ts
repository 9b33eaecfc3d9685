import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { checkCycles, checkLayers, type SourceFile } from '../scripts/layers.ts'
import { checkSourceRules } from '../scripts/source-rules.ts'

const ROOT = join(import.meta.dirname, '..')

function sources(): SourceFile[] {
  return sourcesIn(['src/**/*.ts'])
}

/** Also the dashboard, and what measures, tests and builds. */
function allSources(): SourceFile[] {
  return sourcesIn(['src', 'web', 'bench', 'e2e', 'scripts'].map((folder) => `${folder}/**/*.{ts,tsx}`))
}

function sourcesIn(patterns: string[]): SourceFile[] {
  const exclude = (path: string): boolean => path.includes('node_modules')
  const paths = globSync(patterns, { cwd: ROOT, exclude }).map((path) => path.replaceAll('\\', '/'))
  return paths.sort().map((path) => ({ path, text: readFileSync(join(ROOT, path), 'utf8') }))
}

function layerFaults(path: string, text: string): string[] {
  return checkLayers([{ path, text }]).map(({ line, message }) => `${line}: ${message}`)
}

function ruleFaults(path: string, text: string): string[] {
  return checkSourceRules([{ path, text }]).map(({ line, message }) => `${line}: ${message}`)
}

describe('this source', () => {
  test('imports point down only', () => {
    assert.deepEqual(checkLayers(sources()), [])
  })

  test('has no circle of imports, of values or of types', () => {
    assert.deepEqual(checkCycles(allSources()), [])
  })

  test('nothing ambient, no stray SQL, nothing decided by a text, no oversized or badly named file', () => {
    assert.deepEqual(checkSourceRules(sources()), [])
  })

  test('is being looked at', () => {
    const paths = sources().map(({ path }) => path)
    for (const path of ['src/base/clock.ts', 'src/cli/main.ts', 'src/layers.test.ts']) {
      assert.ok(paths.includes(path), path)
    }
    const all = allSources().map(({ path }) => path)
    for (const path of ['web/src/api.ts', 'bench/session.ts', 'e2e/files/world.ts', 'scripts/layers.ts']) {
      assert.ok(all.includes(path), path)
    }
    assert.ok(all.some((path) => /^src\/apps\/[^/]+\/web\/.*\.tsx$/.test(path)))
  })
})

describe('the layer check refuses', () => {
  const refused: [what: string, path: string, text: string][] = [
    ['an engine that imports an app', 'src/engine/a.ts', `import { x } from '../apps/mail/index.ts'`],
    ['a ledger that imports the engine', 'src/ledger/sqlite/a.ts', `import '../../engine/retry.ts'`],
    ['a type import upwards', 'src/ledger/a.ts', `import type { X } from '../engine/retry.ts'`],
    ['a re-export upwards', 'src/engine/a.ts', `export { x } from "../config/load.ts"`],
    ['a dynamic import upwards', 'src/engine/a.ts', `const x = await import('../cli/main.ts')`],
    ['a worker file upwards', 'src/ledger/a.ts', `new URL('../engine/thread.ts', import.meta.url)`],
    ['a computed import', 'src/engine/a.ts', `await import(\`../apps/\${name}/index.ts\`)`],
    ['an import of a variable', 'src/engine/a.ts', 'await import(path)'],
    ['an app that imports another app', 'src/apps/files/a.ts', `import '../drive-index/plan.ts'`],
    ['a cloud client that imports another', 'src/cloud/gmail/a.ts', `import '../drive/client.ts'`],
    ['a company that imports its service', 'src/cloud/google/a.ts', `import '../drive/client.ts'`],
    ['a ledger that imports the other', 'src/ledger/sqlite/a.ts', `import '../postgres/claim.ts'`],
    ['an app that imports the simulated cloud', 'src/apps/files/a.ts', `import '../../sim/graph.ts'`],
    ['an app that imports the server', 'src/apps/files/a.ts', `import '../../server/server.ts'`],
    ['an app that imports the runtime', 'src/apps/files/a.ts', `import '../../runtime/runtime.ts'`],
    ['the seam that imports an app', 'src/app/a.ts', `import '../apps/files/open.ts'`],
    ['the server that imports an app', 'src/server/a.ts', `import '../apps/files/open.ts'`],
    ['the runtime that imports an app', 'src/runtime/a.ts', `import '../apps/registry.ts'`],
    ['a server that imports the command line', 'src/server/a.ts', `import '../cli/main.ts'`],
    ['an app that imports the demo of another', 'src/apps/mail/a.ts', `import '../files/demo/demo.ts'`],
    ['an app that imports its own demo', 'src/apps/mail/a.ts', `import './demo/demo.ts'`],
    ['a demo that imports another app', 'src/apps/mail/demo/a.ts', `import '../../files/store/rows.ts'`],
    [
      'a page that imports the page of another',
      'src/apps/mail/web/a.ts',
      `import '../../files/web/pages.ts'`,
    ],
    ['a command that imports an app', 'src/cli/jobs/a.ts', `import '../../apps/mail/open.ts'`],
    ['a page that imports the store', 'src/apps/mail/web/a.ts', `import '../store/archive.ts'`],
    ['an import from outside src', 'src/engine/a.ts', `import '../../scripts/postgres.ts'`],
    ['an import of a test', 'src/engine/a.ts', `import './b.test.ts'`],
    ['pg outside its ledger', 'src/engine/a.ts', `import pg from 'pg'`],
    ['node:sqlite outside its ledger', 'src/engine/a.ts', `import { DatabaseSync } from 'node:sqlite'`],
    ['an engine that opens sockets', 'src/engine/a.ts', `import { connect } from 'node:net'`],
    [
      'an engine with timers of its own',
      'src/engine/a.ts',
      `import { setTimeout } from 'node:timers/promises'`,
    ],
    ['a folder that is no layer', 'src/plugins/a.ts', 'export const a = 1'],
  ]
  for (const [what, path, text] of refused) {
    test(what, () => {
      assert.equal(layerFaults(path, text).length, 1)
    })
  }

  test('with the line and both names', () => {
    const [fault] = layerFaults('src/ledger/a.ts', `\n\nimport { x } from '../engine/retry.ts'\n`)
    assert.equal(fault, '3: imports src/engine/retry.ts: ledger may not know engine')
  })
})

describe('the check of circles', () => {
  const circle = (first: string, second: string): string[] =>
    checkCycles([
      { path: 'src/engine/a.ts', text: first },
      { path: 'src/engine/b.ts', text: second },
    ]).map(({ message }) => message)

  test('refuses two files that import each other, with the way', () => {
    assert.deepEqual(circle(`import { b } from './b.ts'`, `export { a } from './a.ts'`), [
      'imports itself by way of src/engine/b.ts, src/engine/a.ts',
    ])
  })

  test('refuses it also where one of them brings types inline, which is loaded all the same', () => {
    assert.equal(circle(`import { type B } from './b.ts'`, `import './a.ts'`).length, 1)
  })

  test('refuses it also where one of them, or both, bring types alone', () => {
    const way = ['imports itself by way of src/engine/b.ts, src/engine/a.ts']
    assert.deepEqual(circle(`import type { B } from './b.ts'`, `import { a } from './a.ts'`), way)
    assert.deepEqual(circle(`import type { B } from './b.ts'`, `import type { A } from './a.ts'`), way)
    assert.deepEqual(circle(`import {\n  b,\n} from './b.ts'`, `export type {\n  A,\n} from './a.ts'`), way)
    assert.deepEqual(circle(`type B = import('./b.ts').B`, `import { a } from './a.ts'`), way)
    assert.deepEqual(circle(`type B = typeof import('./b.ts')`, `import { a } from './a.ts'`), way)
  })

  test('allows what is imported when it is needed, and two ways to the same file', () => {
    assert.deepEqual(circle(`const b = await import('./b.ts')`, `import { a } from './a.ts'`), [])
    assert.deepEqual(circle(`const b = () => import('./b.ts')`, `import type { A } from './a.ts'`), [])
    const once = `import type { C } from './c.ts'\n`
    assert.deepEqual(circle(`${once}import { b } from './b.ts'`, once), [])
  })
})

describe('the layer check allows', () => {
  const allowed: [what: string, path: string, text: string][] = [
    [
      'imports downwards',
      'src/engine/a.ts',
      `import { a } from '../ledger/contract.ts'\nimport '../clock.ts'`,
    ],
    ['imports within a layer', 'src/engine/a.ts', `import { b } from './b.ts'`],
    ['what the services of a company share', 'src/cloud/gmail/a.ts', `import '../google/sign-in.ts'`],
    ['files shared by all clients', 'src/cloud/gmail/a.ts', `import '../http.ts'`],
    ['a page that uses the dashboard', 'src/apps/mail/web/a.ts', `import '../../../../web/src/format.ts'`],
    ['a page that knows its answers', 'src/apps/mail/web/a.ts', `import type { X } from '../api/schemas.ts'`],
    ['pg in its ledger', 'src/ledger/postgres/pool.ts', `import pg from 'pg'`],
    ['the simulated cloud in a test', 'src/cloud/gmail/a.test.ts', `import '../../sim/gmail.ts'`],
    ['the simulated cloud in the command line', 'src/cli/sim.ts', `await import('../sim/gmail.ts')`],
    [
      'imports that stand in comments',
      'src/engine/a.ts',
      `// import '../cli/main.ts'\n/* from '../cli/a.ts' */`,
    ],
    ['imports that stand in strings', 'src/engine/a.ts', `const a = "import '../cli/main.ts'"`],
    ['addresses', 'src/engine/a.ts', `new URL('../x', base)`],
  ]
  for (const [what, path, text] of allowed) {
    test(what, () => {
      assert.deepEqual(layerFaults(path, text), [])
    })
  }
})

describe('the source rules refuse', () => {
  const refused: [what: string, path: string, text: string][] = [
    ['Date.now', 'src/engine/a.ts', 'const now = Date.now()'],
    ['new Date()', 'src/ledger/sqlite/a.ts', 'const now = new Date()'],
    ['new Date without parentheses', 'src/engine/a.ts', 'const now = new Date;'],
    ['Date()', 'src/engine/a.ts', 'const now = Date()'],
    ['Math.random', 'src/apps/files/plan.ts', 'const x = Math.random() * 2'],
    ['random identifiers', 'src/engine/a.ts', 'const id = crypto.randomUUID()'],
    ['performance.now', 'src/engine/a.ts', 'const t = performance.now()'],
    ['setTimeout', 'src/cloud/gmail/client.ts', 'setTimeout(() => {}, 10)'],
    ['setInterval', 'src/engine/a.ts', 'const timer = setInterval(fn, 10)'],
    ['setTimeout as a value', 'src/engine/a.ts', 'const wait = promisify(setTimeout)'],
    ['AbortSignal.timeout', 'src/cloud/gmail/client.ts', 'const signal = AbortSignal.timeout(100)'],
    ['the global fetch', 'src/cloud/gmail/client.ts', 'const answer = await fetch(url)'],
    ['fetch as a default', 'src/cloud/gmail/client.ts', 'const call = options.fetch ?? fetch'],
    ['globalThis.fetch', 'src/cloud/gmail/client.ts', 'const call = globalThis.fetch'],
    ['process.env', 'src/engine/a.ts', 'const home = process.env.HOME'],
    ['ambient code inside a template', 'src/engine/a.ts', `const a = \`at \${Date.now()} \${\`\${b}\`}\``],
    ['SQL in the engine', 'src/engine/a.ts', `db.prepare('SELECT id FROM jobs')`],
    ['SQL over several lines', 'src/server/a.ts', 'db.query(`\n  UPDATE jobs\n  SET state = 1`)'],
    ['SQL in small letters', 'src/apps/files/jobs.ts', `run('delete from files where id = ?')`],
    ['a transaction by hand', 'src/engine/a.ts', `db.exec('BEGIN IMMEDIATE')`],
    [
      'a reason by how it begins',
      'src/apps/mail/a.ts',
      `if (pause.reason.startsWith('sign-in needed')) go()`,
    ],
    ['a note by what is in it', 'src/server/a.ts', `const is = note?.includes(WAITS)`],
    ['a message by a pattern', 'src/apps/files/a.ts', 'if (/waited for/.test(error.message ?? "")) go()'],
    ['a reason by a sentence', 'src/apps/files/a.ts', `if (because === 'its folder is left alone') go()`],
    ['a sentence before its note', 'src/apps/files/a.ts', `if ('waits for a yes' !== job.note) go()`],
    [
      'SQL by how a reason begins',
      'src/apps/files/store/a.ts',
      `run("DELETE FROM a WHERE because LIKE 'left %'")`,
    ],
    ['a file of 701 lines', 'src/cli/a.ts', 'export const a = 1\n'.repeat(701)],
    ['a literal that is spread', 'src/cli/a.ts', 'const a = {\n  ...{ b: 1, c: 2 },\n}'],
    ['a literal that is spread over lines', 'src/cli/a.ts', 'const a = { d,\n  ...{\n    b: 1,\n  },\n}'],
    ['a payload by a pattern', 'src/apps/files/a.ts', 'if (/"verb":"upload"/.test(job.payload)) go()'],
    ['a bucket', 'src/engine/utils.ts', ''],
    ['a folder of buckets', 'src/engine/helpers/retry.ts', ''],
    ['types.ts', 'src/engine/types.ts', ''],
    ['camelCase file names', 'src/engine/retryPolicy.ts', ''],
    ['a service in the server', 'src/server/a.ts', `const name = 'gmail'`],
    ['a service in a name', 'src/cli/a.ts', 'const oneDriveClient = 1'],
    ['a service in the kernel of the simulated cloud', 'src/sim/start.ts', `import './gmail/mailbox.ts'`],
    ['a service in the command that starts it', 'src/cli/sim.ts', 'const onedrive = 1'],
    ['a service in the demo', 'src/cli/demo/cloud.ts', `const to = 'Google Drive'`],
    ['a barrel', 'src/config/index.ts', ''],
  ]
  for (const [what, path, text] of refused) {
    test(what, () => {
      assert.equal(ruleFaults(path, text).length, 1, JSON.stringify(ruleFaults(path, text)))
    })
  }
})

describe('the source rules allow', () => {
  const allowed: [what: string, path: string, text: string][] = [
    ['a date from a number', 'src/engine/a.ts', 'const day = new Date(now).toISOString()'],
    ['Date as a type', 'src/engine/a.ts', 'function f(date: Date): Date { return date }'],
    [
      'a fetch that was passed in',
      'src/cloud/gmail/client.ts',
      'function f({ fetch }: X) { return fetch(url) }',
    ],
    ['a fetch that is a field', 'src/cloud/gmail/client.ts', 'return this.#fetch(url) ?? options.fetch(url)'],
    ['setImmediate', 'src/engine/a.ts', 'setImmediate(fn)'],
    ['ambient words in comments', 'src/engine/a.ts', '// Date.now() would be wrong\n/* Math.random() */'],
    ['ambient words in messages', 'src/engine/a.ts', `const message = 'never call Date.now() here'`],
    ['a clock in the command line', 'src/cli/a.ts', 'const now = Date.now()'],
    ['a clock in a test', 'src/engine/a.test.ts', 'const now = Date.now()'],
    ['SQL in a ledger', 'src/ledger/sqlite/claim.ts', `db.prepare('SELECT id FROM jobs')`],
    ["SQL in an app's store", 'src/apps/files/store.ts', `db.prepare('INSERT INTO files VALUES (?)')`],
    [
      'sentences that begin like SQL',
      'src/engine/a.ts',
      `say('delete from the cloud what is stored', 'update all')`,
    ],
    [
      'a code that is compared',
      'src/engine/a.ts',
      `if (stopped.reason === 'stalled' || pause.code === 'sign-in') go()`,
    ],
    [
      "other people's words in the one place that reads them",
      'src/cloud/gmail/errors.ts',
      '/scope/.test(google.message)',
    ],
    [
      'the texts of before in a step of a schema',
      'src/apps/files/store/schema.ts',
      `run("UPDATE a SET b = 1 WHERE note LIKE 'waits: %'")`,
    ],
    ['what a test asks of a text', 'src/engine/a.test.ts', 'assert.ok(error.message.includes(x))'],
    ['a long test', 'src/engine/a.test.ts', 'a()\n'.repeat(900)],
    ['the face of a package', 'src/engine/index.ts', `export { a } from './a.ts'`],
    ['a service in its own folder', 'src/sim/gmail/a.ts', `const name = 'gmail'`],
    ['services where they are registered', 'src/sim/registry.ts', `import './gmail/service.ts'`],
    ['a regular expression with quotes', 'src/engine/a.ts', `const a = /['"\`]/.test(b) // Date.now()`],
  ]
  for (const [what, path, text] of allowed) {
    test(what, () => {
      assert.deepEqual(ruleFaults(path, text), [])
    })
  }
})
