/** `tidemark serve` as people and service managers start it. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { appendFileSync, chmodSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { setTimeout as pass } from 'node:timers/promises'
import { withToken } from '../../server/server.suite.ts'
import { Processes, type Run, tokenIn } from './serve.suite.ts'

const processes = new Processes()
after(() => processes.close())

const empty = join(processes.folder, 'empty.toml')
writeFileSync(empty, '')

const TOKEN = 'a-token-that-is-long-enough'

function serve(name: string, ...args: string[]): Run {
  return processes.start(['--json', '--home', join(processes.folder, name), 'serve', '--port', '0', ...args])
}

const homeOf = (name: string): string => join(processes.folder, name)

/** As the owner, who can read the token of that home. */
const ask = (name: string, url: string, init: RequestInit = {}): Promise<Response> =>
  fetch(url, withToken(init, tokenIn(homeOf(name))))

async function stop({ child, ended }: Run): Promise<number | null> {
  child.kill('SIGTERM')
  return ended
}

describe('tidemark serve', () => {
  test('on a fresh home answers pages, API and health, and stops gracefully on SIGTERM', async () => {
    const run = serve('fresh')
    const { url } = await run.ready
    for (const path of ['/healthz', '/readyz', '/api/overview', '/api/openapi.json', '/metrics']) {
      const answer = await ask('fresh', url + path)
      assert.equal(answer.status, 200, `${path}: ${await answer.text()}`)
    }
    for (const path of ['/', '/work/jobs/5']) {
      const page = await fetch(url + path)
      assert.match(page.headers.get('content-type') ?? '', /^text\/html/)
      assert.match(await page.text(), /<!doctype html>/i)
    }
    // A live page does not keep it from stopping.
    const events = await ask('fresh', `${url}/api/events`)
    assert.equal(await stop(run), 0, run.stderr())
    await events.body?.cancel().catch(() => {})
    assert.match(run.stderr(), /Stopping; what is under way is kept/)
    await assert.rejects(fetch(`${url}/healthz`))
  })

  test('a port that is taken is named, with what to do, and exit code 2', async () => {
    const other = createServer().listen(0, '127.0.0.1')
    await once(other, 'listening')
    const { port } = other.address() as { port: number }
    const run = processes.start([
      ...['--home', join(processes.folder, 'taken'), 'serve', '--port', String(port)],
    ])
    assert.equal(await run.ended, 2)
    assert.match(
      run.stderr(),
      new RegExp(`Port ${port} on 127\\.0\\.0\\.1 is taken[\\s\\S]*choose another port`),
    )
    other.close()
  })

  test('makes a token at its first start, keeps it for its owner alone, shows it nowhere, and always requires it', async () => {
    const first = serve('kept')
    const { url, signIn } = await first.ready
    const file = join(homeOf('kept'), 'server.token')
    const token = readFileSync(file, 'utf8').trim()
    assert.deepEqual([statSync(file).mode & 0o777, statSync(homeOf('kept')).mode & 0o777], [0o600, 0o700])
    assert.equal((await fetch(`${url}/api/overview`)).status, 401)
    assert.equal((await ask('kept', `${url}/api/overview`)).status, 200)
    assert.equal(await stop(first), 0)
    const second = serve('kept', '--host', '0.0.0.0')
    await second.ready
    assert.equal(readFileSync(file, 'utf8').trim(), token)
    assert.equal(await stop(second), 0)
    for (const said of [first.stdout(), first.stderr(), second.stdout(), second.stderr(), signIn ?? '']) {
      assert.ok(!said.includes(token))
    }
    chmodSync(file, 0o644)
    const open = serve('kept')
    assert.equal(await open.ended, 2)
    assert.match(open.stderr(), /Others may read or change .*server\.token[\s\S]*rm /)
  })

  test('prints an address that signs one browser in, and `tidemark sign-in` prints another', async () => {
    const run = serve('code')
    const { url, signIn } = await run.ready
    const enter = async (address: string): Promise<number> => {
      const body = JSON.stringify({ code: new URL(address).hash.slice(1) })
      const headers = { 'content-type': 'application/json', 'x-tidemark': '1' }
      return (await fetch(`${url}/api/sign-in`, { method: 'POST', headers, body })).status
    }
    assert.ok(signIn)
    assert.ok(signIn.startsWith(`${url}/sign-in#`))
    assert.deepEqual([await enter(signIn), await enter(signIn)], [200, 401])
    const port = new URL(url).port
    const printed = processes.start(['--home', homeOf('code'), 'sign-in', '--port', port])
    assert.equal(await printed.ended, 0, printed.stderr())
    const address = printed.stdout().trim()
    assert.ok(address.startsWith(`${url}/sign-in#`), address)
    assert.equal(await enter(address), 200)
    assert.equal(await stop(run), 0)
    assert.match(run.stderr(), /a wrong sign-in was refused/)
  })

  test('tells the journal of systemd no address that signs in', async () => {
    const run = processes.start(['--home', homeOf('journal'), 'serve', '--port', '0'], {
      JOURNAL_STREAM: '8:1',
    })
    while (!run.stdout().includes('Ctrl-C')) await once(run.child.stdout, 'data')
    assert.match(
      run.stdout(),
      /Tidemark is at http:\/\/127\.0\.0\.1:\d+; sign in with the address that `tidemark sign-in` prints/,
    )
    assert.ok(!run.stdout().includes('#'))
    assert.equal(await stop(run), 0)
  })

  test('a home in which no token can be kept is named, with what to do', async () => {
    const home = join(processes.folder, 'no-folder')
    writeFileSync(home, 'a file')
    const run = processes.start(['--home', join(home, 'data'), '--config', empty, 'serve'])
    assert.equal(await run.ended, 2, run.stderr())
    assert.match(run.stderr(), /No token can be kept in .*no-folder.*\n.*server\.token/)
  })

  test('a token that is set takes the place of the one that is made, and a short one is refused', async () => {
    const home = join(processes.folder, 'set')
    const run = processes.start(['--json', '--home', home, 'serve', '--port', '0'], {
      TIDEMARK_SERVER_TOKEN: TOKEN,
    })
    const { url } = await run.ready
    assert.equal((await fetch(`${url}/api/overview`)).status, 401)
    const config = await fetch(`${url}/api/config`, { headers: { authorization: `Bearer ${TOKEN}` } })
    assert.ok(!(await config.text()).includes(TOKEN))
    assert.equal(await stop(run), 0)
    const short = processes.start(['--home', home, 'serve', '--port', '0'], {
      TIDEMARK_SERVER_TOKEN: 'short',
    })
    assert.equal(await short.ended, 2)
    assert.match(short.stderr(), /server\.token/)
  })

  test('a worker tells its health and nothing else, and a web process runs no engine', async () => {
    const worker = serve('roles', '--role', 'worker')
    const { url } = await worker.ready
    assert.deepEqual(
      await Promise.all(
        ['/readyz', '/metrics', '/api/overview', '/'].map(
          async (path) => (await ask('roles', url + path)).status,
        ),
      ),
      [200, 200, 404, 404],
    )
    assert.equal((await fetch(`${url}/metrics`)).status, 401)
    assert.equal(await stop(worker), 0)
    const web = serve('roles', '--role', 'web')
    const ready = (await (await ask('roles', `${(await web.ready).url}/readyz`)).json()) as {
      role: string
      engine: string
    }
    assert.equal(ready.role, 'web')
    assert.notEqual(ready.engine, 'started')
    assert.equal(await stop(web), 0)
  })

  test('SIGHUP reads the configuration again; a broken one leaves everything as it was', async () => {
    const home = join(processes.folder, 'reload')
    mkdirSync(home)
    const file = join(home, 'config.toml')
    writeFileSync(file, '[engine]\nworkers = 3\n')
    const run = serve('reload')
    const { url } = await run.ready
    const workers = async (): Promise<unknown> => {
      const { items } = (await (await ask('reload', `${url}/api/config`)).json()) as {
        items: { key: string; value: unknown }[]
      }
      return items.find(({ key }) => key === 'engine.workers')?.value
    }
    const heard = async (text: RegExp): Promise<void> => {
      while (!text.test(run.stderr())) await pass(10)
    }
    assert.equal(String(await workers()), '3')
    writeFileSync(file, '[engine]\nworkers = 5\n')
    run.child.kill('SIGHUP')
    await heard(/read again/)
    assert.equal(String(await workers()), '5')
    appendFileSync(file, 'nonsense = 1\n')
    run.child.kill('SIGHUP')
    await heard(/nonsense[\s\S]*Nothing was changed: the configuration that was read before still holds/)
    assert.equal(String(await workers()), '5')
    assert.equal(await stop(run), 0)
  })

  test('a setting that is changed through the API stands in the file, as it was written, and holds at once', async () => {
    const home = join(processes.folder, 'change')
    mkdirSync(home)
    const file = join(home, 'config.toml')
    writeFileSync(file, '# mine\n[files]\npoll_seconds = 45 # calm\n')
    const run = serve('change')
    const { url } = await run.ready
    const put = async (key: string, value: string | null) => {
      const headers = { 'content-type': 'application/json', 'x-tidemark': '1' }
      const init = { method: 'PUT', headers, body: JSON.stringify({ value }) }
      const answer = await ask('change', `${url}/api/config/${key}`, init)
      const body = (await answer.json()) as Record<string, string>
      return { status: answer.status, value: body.value, code: body.code }
    }
    assert.deepEqual(await put('files.poll_seconds', '20'), { status: 200, value: '20', code: undefined })
    assert.equal(readFileSync(file, 'utf8'), '# mine\n[files]\npoll_seconds = 20 # calm\n')
    const both = await Promise.all([put('bandwidth.upload', '1MB/s'), put('bandwidth.download', '2MB/s')])
    assert.deepEqual(
      both.map(({ status }) => status),
      [200, 200],
      'changes at the same time are both kept',
    )
    assert.match(readFileSync(file, 'utf8'), /upload = "1MB\/s"\ndownload = "2MB\/s"/)
    const { items } = (await (await ask('change', `${url}/api/config`)).json()) as {
      items: { key: string; value: string }[]
    }
    assert.equal(items.find(({ key }) => key === 'bandwidth.upload')?.value, '1MB/s')
    assert.equal((await put('files.poll_seconds', '1')).status, 400)
    assert.equal((await put('server.token', 'a-token-of-somebody')).code, 'setting-fixed')
    assert.equal((await put('no.such', '1')).status, 404)
    assert.deepEqual((await put('files.poll_seconds', null)).value, '60')
    assert.doesNotMatch(readFileSync(file, 'utf8'), /poll_seconds/)
    assert.equal(await stop(run), 0)
  })
})
