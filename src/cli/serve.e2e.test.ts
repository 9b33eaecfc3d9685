/** `tidemark serve` as people and service managers start it. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { appendFileSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { setTimeout as pass } from 'node:timers/promises'
import { Processes, type Run } from './serve.suite.ts'

const processes = new Processes()
after(() => processes.close())

const empty = join(processes.folder, 'empty.toml')
writeFileSync(empty, '')

const TOKEN = 'a-token-that-is-long-enough'

function serve(name: string, ...args: string[]): Run {
  return processes.start(['--json', '--home', join(processes.folder, name), 'serve', '--port', '0', ...args])
}

async function stop({ child, ended }: Run): Promise<number | null> {
  child.kill('SIGTERM')
  return ended
}

describe('tidemark serve', () => {
  test('on a fresh home answers pages, API and health, and stops gracefully on SIGTERM', async () => {
    const run = serve('fresh')
    const { url } = await run.ready
    for (const path of ['/healthz', '/readyz', '/api/overview', '/api/openapi.json', '/metrics']) {
      const answer = await fetch(url + path)
      assert.equal(answer.status, 200, `${path}: ${await answer.text()}`)
    }
    for (const path of ['/', '/work/jobs/5']) {
      const page = await fetch(url + path)
      assert.match(page.headers.get('content-type') ?? '', /^text\/html/)
      assert.match(await page.text(), /<!doctype html>/i)
    }
    // A live page does not keep it from stopping.
    const events = await fetch(`${url}/api/events`)
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

  test('beyond this machine makes a token, shows it once, keeps it for its owner alone, and requires it', async () => {
    const first = serve('open', '--host', '0.0.0.0')
    const { url } = await first.ready
    const file = join(processes.folder, 'open', 'server.token')
    const token = readFileSync(file, 'utf8').trim()
    assert.equal(statSync(file).mode & 0o777, 0o600)
    assert.ok(first.stderr().includes(token))
    const local = url.replace('0.0.0.0', '127.0.0.1')
    assert.equal((await fetch(`${local}/api/overview`)).status, 401)
    const headers = { authorization: `Bearer ${token}` }
    assert.equal((await fetch(`${local}/api/overview`, { headers })).status, 200)
    assert.equal((await fetch(`${local}/healthz`)).status, 200)
    assert.equal(await stop(first), 0)
    const second = serve('open', '--host', '0.0.0.0')
    await second.ready
    assert.equal(readFileSync(file, 'utf8').trim(), token)
    assert.ok(!second.stderr().includes(token))
    assert.equal(await stop(second), 0)
  })

  test('on this machine, but with a name that others reach it by, requires a token too', async () => {
    const file = join(processes.folder, 'proxied.toml')
    writeFileSync(file, '[server]\nallowed_hosts = ["mail.example.com"]\n')
    const run = serve('proxied', '--config', file)
    const { url } = await run.ready
    assert.match(run.stderr(), /Others can reach mail\.example\.com, so a token was made/)
    assert.equal((await fetch(`${url}/api/overview`)).status, 401)
    assert.equal(await stop(run), 0)
  })

  test('a home in which no token can be kept is named, with what to do', async () => {
    const home = join(processes.folder, 'no-folder')
    writeFileSync(home, 'a file')
    const run = processes.start([
      '--home',
      join(home, 'data'),
      '--config',
      empty,
      'serve',
      '--host',
      '0.0.0.0',
    ])
    assert.equal(await run.ended, 2, run.stderr())
    assert.match(run.stderr(), /No token can be kept in .*no-folder.*\n.*server\.token/)
  })

  test('a token that is set is required on this machine too, and a short one is refused', async () => {
    const home = join(processes.folder, 'set')
    const run = processes.start(['--json', '--home', home, 'serve', '--port', '0'], {
      TIDEMARK_SERVER_TOKEN: TOKEN,
    })
    const { url } = await run.ready
    assert.equal((await fetch(`${url}/api/overview`)).status, 401)
    const config = await fetch(`${url}/api/config`, { headers: { authorization: `Bearer ${TOKEN}` } })
    assert.ok(!(await config.text()).includes(TOKEN))
    assert.equal(await stop(run), 0)
    const short = serve('short', '--token', 'short')
    assert.equal(await short.ended, 2)
    assert.match(short.stderr(), /server\.token/)
  })

  test('a worker tells its health and nothing else, and a web process runs no engine', async () => {
    const worker = serve('roles', '--role', 'worker')
    const { url } = await worker.ready
    assert.deepEqual(
      await Promise.all(
        ['/readyz', '/metrics', '/api/overview', '/'].map(async (path) => (await fetch(url + path)).status),
      ),
      [200, 200, 404, 404],
    )
    assert.equal(await stop(worker), 0)
    const web = serve('roles', '--role', 'web')
    const ready = (await (await fetch(`${(await web.ready).url}/readyz`)).json()) as {
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
      const { items } = (await (await fetch(`${url}/api/config`)).json()) as {
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
})
