import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { startHttpServer } from './http-server.ts'
import { type Core, startCore } from './server.suite.ts'

const home = mkdtempSync(join(tmpdir(), 'tidemark-static-'))
const webFolder = join(home, 'dist')
const SCRIPT = '/assets/index-Ab12_-Cd.js'
let core: Core

before(async () => {
  mkdirSync(join(webFolder, 'assets'), { recursive: true })
  mkdirSync(join(webFolder, '.vite'))
  writeFileSync(join(home, 'secret.txt'), 'secret')
  writeFileSync(join(webFolder, 'index.html'), '<!doctype html>page')
  writeFileSync(join(webFolder, 'favicon.svg'), '<svg/>')
  writeFileSync(join(webFolder, '.vite/manifest.json'), '{}')
  writeFileSync(join(webFolder, '.env'), 'secret')
  writeFileSync(join(webFolder, SCRIPT), 'script()')
  writeFileSync(join(webFolder, `${SCRIPT}.gz`), gzipSync('script()'))
  symlinkSync(join(home, 'secret.txt'), join(webFolder, 'link.txt'))
  core = await startCore({ webFolder })
})

after(async () => {
  await core.close()
  rmSync(home, { recursive: true, force: true })
})

describe('the pages', () => {
  test('are one document at every path that is no file', async () => {
    const paths = [
      '/',
      '/streams/mail%3Aann%40example.com',
      '/work/jobs/5',
      '/search?q=a.b',
      '/mail/a@b.de/18c',
    ]
    for (const path of paths) {
      const response = await core.request(path)
      assert.equal(response.status, 200, path)
      assert.equal(await response.text(), '<!doctype html>page')
      assert.equal(response.headers.get('content-type'), 'text/html; charset=utf-8')
      assert.equal(response.headers.get('cache-control'), 'no-cache')
    }
  })

  test('are not sent again while they are the same', async () => {
    const etag = (await core.request('/')).headers.get('etag')!
    const again = await core.request('/work', { headers: { 'if-none-match': etag } })
    assert.equal(again.status, 304)
    assert.equal(await again.text(), '')
  })

  test('change with a new build', async () => {
    writeFileSync(join(webFolder, 'index.html'), '<!doctype html>new')
    utimesSync(join(webFolder, 'index.html'), 1_900_000_000, 1_900_000_000)
    assert.equal(await (await core.request('/')).text(), '<!doctype html>new')
    writeFileSync(join(webFolder, 'index.html'), '<!doctype html>page')
  })

  test('are the old ones while a new build takes their place', async () => {
    assert.equal((await core.request('/')).status, 200)
    renameSync(webFolder, `${webFolder}-old`)
    assert.equal(await (await core.request('/')).text(), '<!doctype html>page')
    assert.equal((await core.request(SCRIPT)).status, 200)
    renameSync(`${webFolder}-old`, webFolder)
  })

  test('that are not built are a page that says how to build them', async () => {
    const bare = await startCore({ webFolder: join(home, 'nowhere') })
    const response = await bare.request('/')
    assert.equal(response.status, 404)
    assert.match(await response.text(), /npm run build/)
    await bare.close()
  })
})

describe('a file', () => {
  test('with a hash in its name may be kept for ever', async () => {
    const response = await core.request(SCRIPT)
    assert.equal(response.headers.get('cache-control'), 'public, max-age=31536000, immutable')
    assert.equal(response.headers.get('content-type'), 'text/javascript; charset=utf-8')
    assert.equal(await response.text(), 'script()')
    assert.equal((await core.request('/favicon.svg')).headers.get('cache-control'), 'no-cache')
  })

  test('is sent packed to who can unpack it', async () => {
    const encoding = async (accept: string): Promise<string | null> =>
      (await core.request(SCRIPT, { headers: { 'accept-encoding': accept } })).headers.get('content-encoding')
    assert.equal(await encoding('gzip, br'), 'gzip')
    assert.equal(await encoding('GZIP;q=0.5'), 'gzip')
    assert.equal(await encoding('gzip;q=0'), null)
    assert.equal(await encoding('deflate'), null)
  })

  test('that is not there is not a page', async () => {
    for (const path of ['/assets/gone-12345678.js', '/favicon.ico', '/assets/', '/a.json']) {
      assert.equal((await core.request(path)).status, 404, path)
    }
  })

  test('outside the folder, hidden or behind a link is out of reach', async () => {
    const http = await startHttpServer({ app: core.server.app, port: 0 })
    const paths = [
      '/../secret.txt',
      '/..%2fsecret.txt',
      '/%2e%2e/secret.txt',
      '/assets/../../secret.txt',
      '/assets/..%2f..%2fsecret.txt',
      '/assets/%2e%2e%2f%2e%2e%2fsecret.txt',
      '/..%5csecret.txt',
      '//secret.txt',
      '/....//secret.txt',
      `/${encodeURIComponent(join(home, 'secret.txt'))}`,
      '/link.txt',
      '/.env',
      '/.vite/manifest.json',
      `${SCRIPT}.gz`,
      '/__proto__',
      '/constructor',
    ]
    for (const path of paths) {
      for (const response of [await core.request(path), await fetch(http.url + path)]) {
        assert.doesNotMatch(await response.text(), /secret(?!\.txt)|^\{\}/, path)
        assert.ok(response.status < 500, path)
      }
    }
    await http.close()
  })
})
