/** What docs/ingest.md says of the simulated cloud is what `tidemark sim` prints, and works when it is typed. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { after, test } from 'node:test'
import { commandsOf, readChapters } from '../document-blocks.ts'

const ROOT = join(import.meta.dirname, '..', '..')
const folder = mkdtempSync(join(tmpdir(), 'tidemark-try-'))
after(() => rmSync(folder, { recursive: true, force: true }))
const env = {
  PATH: `${join(ROOT, 'bin')}:${process.env.PATH}`,
  HOME: folder,
  TIDEMARK_SEARCH_EMBEDDING: 'off',
}

/** As much of it as the commands need, wherever it is not installed. */
const CURL = `import { writeFileSync } from 'node:fs'
const args = process.argv.slice(2)
const valueOf = (flag) => args[args.indexOf(flag) + 1]
const body = args.includes('-d') ? { method: 'POST', body: valueOf('-d') } : {}
const answer = await fetch(args.find((one) => one.startsWith('http')), body)
const text = await answer.text()
if (args.includes('-o')) writeFileSync(valueOf('-o'), text)
else console.log(text)
process.exit(answer.ok ? 0 : 1)
`

test('the simulated cloud prints what to type, and what is typed makes pipelines that read from it', async () => {
  const chapters = readChapters(join(ROOT, 'docs', 'ingest.md'))
  const [start = '', ...typed] = commandsOf(
    chapters.filter(({ title }) => title === 'Try it without a cloud'),
  )
  const flags = start.replace('--port 8088', '--port 0').split(' ').slice(1)
  const sim = spawn(join(ROOT, 'bin', 'tidemark'), flags, { env, stdio: ['ignore', 'pipe', 'inherit'] })
  const ended = once(sim, 'close')
  try {
    const printed: string[] = []
    for await (const line of createInterface({ input: sim.stdout })) {
      printed.push(line.trim())
      if (line.includes('Ctrl-C')) break
    }
    const port = /http:\/\/127\.0\.0\.1:(\d+)/.exec(printed.join('\n'))![1]!
    const here = typed.map((line) => line.replaceAll('8088', port))
    const shared = here.filter((line) => !line.startsWith('tidemark search'))
    assert.deepEqual(
      shared.filter((line) => !line.includes('TIDEMARK_HOME')).filter((line) => !printed.includes(line)),
      [],
      'all of it is printed',
    )
    assert.ok(printed.some((line) => line.startsWith('export TIDEMARK_HOME=')))
    writeFileSync(join(folder, 'curl.mjs'), CURL)
    const script = [
      'set -e',
      `curl() { '${process.execPath}' curl.mjs "$@"; }`,
      ...here.map((line) =>
        line.replace(/^export TIDEMARK_HOME=.*/, `export TIDEMARK_HOME='${folder}/home'`),
      ),
    ]
    const shell = spawn('sh', ['-c', script.join('\n')], {
      cwd: folder,
      env,
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    let out = ''
    for (const stream of [shell.stdout, shell.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => {
        out += text
      })
    }
    const [code] = (await once(shell, 'close')) as [number | null]
    assert.equal(code, 0, out)
    for (const name of ['logs', 'files']) {
      const books = 'bucket lists 1 = 1 stored \\+ 0 skipped \\+ 0 bad \\+ 0 on their way'
      assert.match(out, new RegExp(`${name}: settled\\n {2}books {7}${books}`))
      assert.match(out, new RegExp(`${name}: done; ${books}`))
    }
    assert.match(out, /messages {4}1 received, 1 acknowledged/)
    assert.match(out, /a spring tide at noon/)
  } finally {
    sim.kill('SIGTERM')
    await ended
  }
})
