import assert from 'node:assert/strict'
import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { type LibsqlServer, startLibsql } from '../../../scripts/libsql.ts'
import { TidemarkError, UsageError } from '../../base/errors.ts'
import { onLibsql } from '../home.suite.ts'
import { openLedger } from '../open.ts'
import { SCHEMA_VERSION } from '../schema.ts'
import { Connection, parseTarget } from './connection.ts'

function tokenOf(key: KeyObject, claims: object): string {
  const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')
  const head = `${part({ alg: 'EdDSA', typ: 'JWT' })}.${part(claims)}`
  return `${head}.${sign(null, Buffer.from(head), key).toString('base64url')}`
}

async function refusalOf(open: Promise<unknown>): Promise<TidemarkError> {
  const thrown = await open.then(
    () => assert.fail('it was let in'),
    (error: unknown) => error,
  )
  assert.ok(thrown instanceof TidemarkError, String(thrown))
  return thrown
}

test('the address of a libSQL database holds no secret, and says http or https', () => {
  assert.equal(parseTarget('libsql://a.turso.io', 'x').url, 'https://a.turso.io')
  assert.equal(parseTarget('libsql://a.local:8080?tls=0', 'x').url, 'http://a.local:8080')
  assert.equal(parseTarget('http://127.0.0.1:8080/', undefined).url, 'http://127.0.0.1:8080')
  for (const url of [
    'libsql://a.turso.io?authToken=geheim',
    'libsql://me:geheim@a.turso.io',
    'libsql://:geheim@a.turso.io',
    'libsql://a.turso.io#geheim',
    'libsql://',
  ]) {
    assert.throws(
      () => parseTarget(url, undefined),
      (thrown: unknown) =>
        thrown instanceof UsageError && !`${thrown.message}${thrown.hint}`.includes('geheim'),
    )
  }
})

test('a token goes nowhere unencrypted but to this machine, unless that is asked for', () => {
  for (const url of ['http://db.example.com:8080', 'http://10.0.0.7', 'http://127.example.com']) {
    assert.equal(parseTarget(url, undefined).url, url)
    assert.throws(() => parseTarget(url, 'geheim'), UsageError)
    assert.equal(parseTarget(url.replace('http:', 'https:'), 'geheim').token, 'geheim')
    assert.equal(parseTarget(`${url.replace('http:', 'libsql:')}?tls=0`, 'geheim').url, url)
  }
  for (const host of ['localhost', '127.0.0.1', '[::1]'])
    assert.equal(parseTarget(`http://${host}:8080`, 'geheim').token, 'geheim')
})

test('a token is taken without the end of its line, and refused where it is none', () => {
  const tokenOfText = (text: string) => parseTarget('https://a.turso.io', text).token
  assert.deepEqual(['geheim\n', ' geheim\r\n', ' '].map(tokenOfText), ['geheim', 'geheim', undefined])
  for (const text of ['token: geheim', 'geheim\ngeheim', '“geheim”']) {
    assert.throws(
      () => tokenOfText(text),
      (thrown: unknown) => thrown instanceof UsageError && !thrown.message.includes('geheim'),
    )
  }
})

onLibsql(() => {
  describe('opening a ledger on libSQL', () => {
    const { publicKey, privateKey } = generateKeyPairSync('ed25519')
    const all = tokenOf(privateKey, { a: 'rw' })
    let folder: string
    let server: LibsqlServer
    let replica: LibsqlServer
    before(async () => {
      folder = mkdtempSync(join(tmpdir(), 'tidemark-key-'))
      const keyFile = join(folder, 'key.pem')
      writeFileSync(keyFile, publicKey.export({ type: 'spki', format: 'pem' }))
      server = await startLibsql({ keyFile, isPrimary: true })
      replica = await startLibsql({ keyFile, replicaOf: server.grpcUrl })
    })
    after(async () => {
      await replica.stop()
      await server.stop()
      rmSync(folder, { recursive: true, force: true })
    })

    async function sql(...statements: string[]): Promise<void> {
      const connection = new Connection(parseTarget(server.url, all))
      const { errors } = await connection.stream().batch(
        statements.map((one) => ({ sql: one })),
        { isFirst: true },
      )
      connection.close()
      for (const error of errors) if (error) throw error
    }

    test('with a wrong, an expired or no token is refused, and the token is in no message', async () => {
      const other = tokenOf(generateKeyPairSync('ed25519').privateKey, { a: 'rw' })
      for (const token of [undefined, other, tokenOf(privateKey, { a: 'rw', exp: 1_000 })]) {
        const { code, kind, message, hint } = await refusalOf(openLedger(server.url, { token }))
        assert.deepEqual([code, kind], ['ledger-auth', 'auth'])
        assert.match(
          message,
          token ? /refused the token: Unauthorized/ : /asks for a token, and there is none/,
        )
        assert.match(hint ?? '', /ledger\.token/)
        if (token) assert.ok(!`${message}${hint}`.includes(token))
      }
    })

    test('with a token that may only read says so, and leaves nothing behind', async () => {
      const token = tokenOf(privateKey, { a: 'ro' })
      const { code, hint } = await refusalOf(openLedger(server.url, { token }))
      assert.equal(code, 'ledger-readonly')
      assert.match(hint ?? '', /full access/)
      const { code: unmade } = await refusalOf(openLedger(server.url, { token, create: false }))
      assert.equal(unmade, 'ledger-unmade')
    })

    test('where there is no server is an outage that names the place', async () => {
      const gone = await startLibsql()
      await gone.stop()
      const { code, kind, message } = await refusalOf(openLedger(gone.url))
      assert.deepEqual([code, kind], ['ledger-down', 'transient'])
      assert.ok(message.includes(gone.url))
    })

    test('in a database of somebody else is refused before anything is written', async () => {
      await sql(`CREATE TABLE meta (id INTEGER)`, `CREATE TABLE holidays (day TEXT)`)
      const { code, hint } = await refusalOf(openLedger(server.url, { token: all }))
      assert.equal(code, 'ledger-foreign')
      assert.match(hint ?? '', /another database/)
      await sql(`SELECT day FROM holidays`, `DROP TABLE meta`, `DROP TABLE holidays`)
    })

    test('made by two at once is made once, and one of a newer Tidemark is left alone', async () => {
      const opened = await Promise.all([1, 2].map(() => openLedger(server.url, { token: all })))
      for (const ledger of opened) await ledger.close()
      await sql(`UPDATE meta SET value = '${SCHEMA_VERSION + 1}' WHERE name = 'schema_version'`)
      const { code } = await refusalOf(openLedger(server.url, { token: all }))
      assert.equal(code, 'ledger-newer')
      await sql(`UPDATE meta SET value = '${SCHEMA_VERSION}' WHERE name = 'schema_version'`)
    })

    test('whose writes the server has blocked can be looked at, and writes are an outage', async () => {
      const ledger = await openLedger(server.url, { token: all })
      const block = async (isBlocked: boolean): Promise<void> => {
        const answer = await fetch(`${server.adminUrl}/v1/namespaces/default/config`, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify({
            block_reads: false,
            block_writes: isBlocked,
            block_reason: 'above its plan',
          }),
        })
        assert.equal(answer.status, 200)
      }
      await block(true)
      const { code, message } = await refusalOf(ledger.stream('mail'))
      assert.equal(code, 'ledger-readonly')
      assert.match(message, /above its plan/)
      assert.deepEqual(await ledger.streams(), [])
      await block(false)
      assert.equal((await ledger.stream('mail')).name, 'mail')
      await ledger.close()
    })

    test('through a replica knows what the primary refuses, and gets answers of any size', async () => {
      const near = await openLedger(replica.url, { token: all })
      const write = (sql: string) => near.driver.transaction((tx) => tx.run(sql))
      await write(`CREATE TABLE once (n INTEGER PRIMARY KEY)`)
      await write(`INSERT INTO once VALUES (1)`)
      await assert.rejects(write(`INSERT INTO once VALUES (1)`), { code: 'SQLITE_CONSTRAINT' })
      const many = `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 12)
        SELECT i, hex(zeroblob(500000)) AS text FROM n`
      const rows = await near.driver.read((tx) => tx.all<{ i: number; text: string }>(many))
      assert.deepEqual(
        rows.map(({ i, text }) => [i, text.length]),
        Array.from({ length: 12 }, (_, at) => [at + 1, 1_000_000]),
      )
      await write(`DROP TABLE once`)
      await near.close()
    })

    test('through a replica sees at once what was written at the primary', async () => {
      const near = await openLedger(replica.url, { token: all })
      const at = await openLedger(server.url, { token: all })
      for (let n = 0; n < 20; n++) {
        const { id } = await at.stream(`stream ${n}`)
        assert.ok((await near.streamNames()).some((stream) => stream.id === id))
        assert.equal((await near.stream(`other ${n}`)).name, `other ${n}`)
        assert.ok((await at.streamNames()).some((stream) => stream.name === `other ${n}`))
      }
      await near.close()
      await at.close()
    })
  })
})
