/** docs/libsql.md from nothing, by a user of Turso: its commands are run as they stand, with a server in Turso's place. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { generateKeyPairSync, sign } from 'node:crypto'
import { once } from 'node:events'
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { type LibsqlServer, startLibsql } from '../scripts/libsql.ts'
import { onLibsql } from '../src/ledger/home.suite.ts'
import { openLedger } from '../src/ledger/open.ts'
import { blocksText, readChapters } from './document-blocks.ts'

const ROOT = join(import.meta.dirname, '..')
const PAGE = join(ROOT, 'docs', 'libsql.md')

onLibsql(() => {
  describe('docs/libsql.md', () => {
    const { publicKey, privateKey } = generateKeyPairSync('ed25519')
    const token = tokenOf({ a: 'rw' })
    let folder: string
    let server: LibsqlServer
    before(async () => {
      folder = mkdtempSync(join(tmpdir(), 'tidemark-libsql-page-'))
      const keyFile = join(folder, 'key.pem')
      writeFileSync(keyFile, publicKey.export({ type: 'spki', format: 'pem' }))
      server = await startLibsql({ keyFile })
      mkdirSync(join(folder, 'bin'))
      const turso = `case "$*" in
        'db create tidemark') echo made ;;
        'db show tidemark --url') echo ${server.url} ;;
        'db tokens create tidemark') echo ${token} ;;
        *) exit 1 ;;
      esac`
      writeFileSync(join(folder, 'bin', 'turso'), `#!/bin/sh\n${turso}\n`)
      chmodSync(join(folder, 'bin', 'turso'), 0o755)
    })
    after(async () => {
      await server.stop()
      rmSync(folder, { recursive: true, force: true })
    })

    function tokenOf(claims: object): string {
      const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')
      const head = `${part({ alg: 'EdDSA', typ: 'JWT' })}.${part(claims)}`
      return `${head}.${sign(null, Buffer.from(head), privateKey).toString('base64url')}`
    }

    async function sh(
      script: string,
      env: NodeJS.ProcessEnv = {},
    ): Promise<{ code: number; printed: string }> {
      const path = [join(folder, 'bin'), join(ROOT, 'bin'), process.env.PATH].join(':')
      const child = spawn('/bin/sh', ['-ec', script], {
        env: { ...process.env, PATH: path, TIDEMARK_HOME: join(folder, 'home'), ...env },
        stdio: ['ignore', 'pipe', 'pipe'],
      })
      let printed = ''
      for (const stream of [child.stdout, child.stderr])
        stream.setEncoding('utf8').on('data', (text: string) => {
          printed += text
        })
      const [code] = (await once(child, 'close')) as [number]
      assert.ok(!printed.includes(token), 'the token was shown')
      return { code, printed }
    }

    test('leads from nothing to a ledger that can be read and written', async () => {
      const commands = blocksText(readChapters(PAGE).find(({ title }) => title === 'Set it up')!, 'sh')
      const first = await sh(commands)
      assert.equal(first.code, 0, first.printed)
      assert.match(first.printed, /ledger: there is none at http:\S+ yet/)
      await (await openLedger(server.url, { token })).close()
      const { code, printed } = await sh('tidemark doctor')
      assert.equal(code, 0, printed)
      assert.match(printed, /ledger: libSQL at http:\S+ can be read and written/)
    })

    test('has the words that are said when something is wrong', async () => {
      const page = readFileSync(PAGE, 'utf8')
      const said = [...page.matchAll(/^\| ([^|]+) \|/gm)].flatMap(([, words]) =>
        words!.split(/ … |, (?=cannot)/),
      )
      const away = await startLibsql()
      await away.stop()
      for (const [env, words] of [
        [{ TIDEMARK_LEDGER_TOKEN: tokenOf({ a: 'rw', exp: 1_000 }) }, 'refused the token'],
        [
          { TIDEMARK_LEDGER_URL: server.url.replace('http:', 'libsql:') },
          'is asked with TLS, and does not answer so',
        ],
        [{ TIDEMARK_LEDGER_URL: away.url }, 'cannot be reached'],
        [{ TIDEMARK_LEDGER_URL: 'libsql://nobody.invalid' }, 'The host'],
      ] as const) {
        assert.ok(said.includes(words), words)
        const { code, printed } = await sh('tidemark doctor', env)
        assert.equal(code, 1, printed)
        assert.ok(printed.includes(words), printed)
      }
      assert.ok(said.includes('asks for a token, and there is none'))
      const { printed } = await sh('sed -i /token/d "$TIDEMARK_HOME/config.toml"; tidemark doctor || true')
      assert.match(printed, /asks for a token, and there is none/)
    })
  })
})
