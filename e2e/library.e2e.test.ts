/** The engine in somebody else's project: a plain compiler accepts it, and what it emits runs. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import packageJson from '../package.json' with { type: 'json' }

const ROOT = join(import.meta.dirname, '..')
const TSC = join(ROOT, 'node_modules', 'typescript', 'bin', 'tsc')

const folder = mkdtempSync(join(tmpdir(), 'tidemark-library-'))
after(() => rmSync(folder, { recursive: true, force: true }))

const PROGRAM = `
import { createEngine, defineJob, type Outcome, request, TidemarkError } from 'tidemark/engine'
import { z } from 'zod'

const greet = defineJob({
  kind: 'demo.greet',
  payload: z.object({ name: z.string(), how: z.enum(['aloud', 'quietly']) }),
  run: async ({ payload, signal }): Promise<Outcome> => {
    signal.throwIfAborted()
    if (payload.name === '') throw new TidemarkError('nobody', { kind: 'permanent' })
    return { effects: async (tx) => void (await tx.run('INSERT INTO greeted(name) VALUES (?)', [payload.name])) }
  },
})

const engine = await createEngine({ ledger: 'sqlite::memory:', jobs: [greet] })
await engine.ledger.migrateApp('demo', [['CREATE TABLE greeted (name TEXT)']])
await engine.enqueueMany(greet, [{ name: 'Ada', how: 'aloud' }])
await engine.write({ jobs: [request(greet, { name: 'Ben', how: 'quietly' })] })
await engine.start()
await engine.drained()
const row = await engine.transaction((tx) => tx.get<{ n: number }>('SELECT count(*) AS n FROM greeted'))
console.log(row?.n)
await engine.stop()

export function wrong(): void {
  // @ts-expect-error the types are there: a payload that does not fit is seen
  void engine.enqueue(greet, { name: 1, how: 'aloud' })
  // @ts-expect-error and so is a misspelled option
  void engine.enqueue(greet, { name: 'Ada', how: 'aloud' }, { runat: 1 })
}
`

type Ended = { code: unknown; output: string }

function run(cwd: string, args: readonly string[]): Promise<Ended> {
  return new Promise((resolve) => {
    execFile(process.execPath, args, { cwd }, (error, stdout, stderr) => {
      resolve({ code: error ? error.code : 0, output: stdout + stderr })
    })
  })
}

/** As after `npm install` here and `npm install ../tidemark` there: npm links a folder. */
async function makeProject(): Promise<string> {
  const library = join(folder, 'tidemark')
  mkdirSync(library)
  for (const name of ['package.json', 'tsconfig.json', 'tsconfig.types.json', 'scripts/build-types.js'])
    cpSync(join(ROOT, name), join(library, name))
  for (const name of ['src', 'node_modules']) symlinkSync(join(ROOT, name), join(library, name))
  const built = await run(library, packageJson.scripts.prepare.split(' ').slice(1))
  assert.equal(built.code, 0, built.output)

  const project = join(folder, 'project')
  mkdirSync(join(project, 'node_modules', '@types'), { recursive: true })
  symlinkSync(library, join(project, 'node_modules', 'tidemark'))
  for (const name of ['zod', '@types/node'])
    symlinkSync(join(ROOT, 'node_modules', name), join(project, 'node_modules', name))
  writeFileSync(join(project, 'package.json'), JSON.stringify({ type: 'module' }))
  writeFileSync(join(project, 'main.ts'), PROGRAM)
  return project
}

const PLAIN = { target: 'es2023', module: 'nodenext', strict: true, types: ['node'] }
/** Stricter than our own, and declarations are checked, too. */
const STRICT = {
  ...{
    exactOptionalPropertyTypes: true,
    noUncheckedIndexedAccess: true,
    noPropertyAccessFromIndexSignature: true,
  },
  noImplicitReturns: true,
  isolatedModules: true,
  verbatimModuleSyntax: true,
  skipLibCheck: false,
}

describe('a project that uses tidemark/engine', async () => {
  const project = await makeProject()
  const configs: [what: string, compilerOptions: object][] = [
    ['a plain compiler', PLAIN],
    ['the strictest compiler', { ...PLAIN, ...STRICT }],
  ]
  for (const [what, compilerOptions] of configs) {
    test(`is accepted by ${what}`, async () => {
      const config = { compilerOptions, files: ['main.ts'] }
      writeFileSync(join(project, 'tsconfig.json'), JSON.stringify(config))
      assert.deepEqual(await run(project, [TSC]), { code: 0, output: '' })
    })
  }

  test('runs as it was compiled', async () => {
    assert.deepEqual(await run(project, ['main.js']), { code: 0, output: '2\n' })
  })
})
