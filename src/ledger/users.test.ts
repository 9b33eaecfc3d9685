import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import type { UsageError } from '../base/errors.ts'
import { Accounts, OWNER_ID } from './accounts.ts'
import { fileHome, type Home, postgresHome, type Site } from './home.suite.ts'
import { TOKEN_BYTES, tokenText, Users, usersSchema } from './users.ts'

const DAY_MS = 86_400_000
const ANN = { name: 'Ann@Example.com', role: 'member' } as const

for (const home of [fileHome(), postgresHome()]) usersContract(home)

function tokenOf(n: number): string {
  return tokenText(new Uint8Array(TOKEN_BYTES).fill(n))
}

function withCode(code: string): (error: UsageError) => boolean {
  return (error) => error.code === code
}

function usersContract(home: Home): void {
  describe(`users on ${home.name}`, () => {
    after(() => home.remove())
    const withUsers = (title: string, fn: (users: Users, site: Site) => Promise<void>): void => {
      test(title, async () => {
        const site = await home.fresh()
        try {
          await fn(await Users.open(site.ledger), site)
        } finally {
          await site.leave()
        }
      })
    }

    withUsers(
      'the owner is there from the beginning, and stays an active admin',
      async (users, { ledger }) => {
        const [owner] = await (await Users.open(ledger)).list()
        assert.deepEqual(
          [owner?.id, owner?.name, owner?.role, owner?.state],
          [OWNER_ID, 'owner', 'admin', 'active'],
        )
        await assert.rejects(users.remove(OWNER_ID), withCode('user-owner'))
        await assert.rejects(users.change(OWNER_ID, { state: 'disabled' }), withCode('user-owner'))
      },
    )

    withUsers(
      'a user is found by name in any case, is there once, and has a name that can be typed',
      async (users) => {
        const ann = await users.add(ANN)
        assert.equal(ann.name, 'ann@example.com')
        assert.deepEqual(await users.find(' ANN@example.com'), ann)
        await assert.rejects(users.add({ name: 'ann@example.com', role: 'admin' }), withCode('user-exists'))
        for (const name of ['', 'two words', 'a\nb', "o'neil"]) {
          await assert.rejects(users.add({ name, role: 'member' }), withCode('user-name'))
        }
      },
    )

    withUsers(
      'a token is known by its hash alone, and notes the day on which it was used',
      async (users, site) => {
        const ann = await users.add(ANN)
        await users.addToken(ann.id, { label: 'laptop', token: tokenOf(1) })
        const kept = await site.ledger.driver.read((tx) =>
          tx.all<{ hash: Uint8Array }>('SELECT * FROM user_tokens', []),
        )
        assert.ok(!JSON.stringify(kept).includes(tokenOf(1)))
        assert.equal(kept[0]?.hash.length, 32)
        assert.equal((await users.byToken(tokenOf(1)))?.id, ann.id)
        assert.equal(await users.byToken(tokenOf(2)), undefined)
        const [token] = await users.tokens(ann.id)
        assert.equal(token?.label, 'laptop')
        assert.equal(token?.usedDayMs, site.ledger.now() - (site.ledger.now() % DAY_MS))
      },
    )

    withUsers(
      'a token ends when it is revoked, when its user is disabled, and when they are removed',
      async (users) => {
        const [ann, bob, eve] = [
          await users.add(ANN),
          await users.add({ name: 'bob', role: 'member' }),
          await users.add({ name: 'eve', role: 'admin' }),
        ]
        const { id } = await users.addToken(ann.id, { label: '', token: tokenOf(1) })
        await users.addToken(bob.id, { label: '', token: tokenOf(2) })
        await users.addToken(eve.id, { label: '', token: tokenOf(3) })
        assert.equal(await users.revokeToken(bob.id, id), false)
        assert.equal(await users.revokeToken(ann.id, id), true)
        assert.equal(await users.active(ann.id, id), undefined)
        assert.equal((await users.active(ann.id))?.id, ann.id)
        await users.change(bob.id, { state: 'disabled' })
        assert.equal(await users.active(bob.id), undefined)
        await users.remove(eve.id)
        for (const n of [1, 2, 3]) assert.equal(await users.byToken(tokenOf(n)), undefined)
        await users.change(bob.id, { state: 'active', role: 'admin' })
        assert.equal((await users.byToken(tokenOf(2)))?.role, 'admin')
      },
    )

    withUsers('a user with accounts stays until these are of somebody else', async (users, { ledger }) => {
      const accounts = await Accounts.open(ledger)
      const ann = await users.add(ANN)
      const sealed = new Uint8Array([1])
      const { id } = await accounts.add({
        service: 'gmail',
        name: 'ann',
        settings: {},
        sealed,
        userId: ann.id,
      })
      await assert.rejects(users.remove(ann.id), withCode('user-busy'))
      await accounts.setUser(id, OWNER_ID)
      await users.remove(ann.id)
      assert.equal(await users.get(ann.id), undefined)
    })

    withUsers('a user is removed with all that is kept for them, or not at all', async (users) => {
      const by = { id: OWNER_ID, name: 'owner' }
      const ann = await users.add(ANN)
      await users.addToken(ann.id, { label: '', token: tokenOf(1) })
      const dies = async (): Promise<void> => {
        throw new Error('the process dies')
      }
      await assert.rejects(users.remove(ann.id, { by, forget: dies }), /dies/)
      assert.equal((await users.byToken(tokenOf(1)))?.id, ann.id)
      assert.deepEqual(await users.audit({ limit: 10 }), [])
      const forgotten: number[] = []
      await users.remove(ann.id, { by, forget: async (_tx, id) => void forgotten.push(id) })
      assert.deepEqual([forgotten, await users.get(ann.id)], [[ann.id], undefined])
      const [noted] = await users.audit({ limit: 10 })
      assert.deepEqual([noted?.action, noted?.subject], ['user-removed', 'ann@example.com'])
    })

    test('what the first version kept is there, and found by time, after it was brought up to date', async () => {
      const { ledger, leave } = await home.fresh()
      try {
        const [first] = usersSchema(ledger.dialect, ledger.now())
        await ledger.migrateApp('users', [first!])
        await ledger.driver.transaction(async (tx) => {
          await tx.run(
            `INSERT INTO users(name, role, state, created_at) VALUES ('ann', 'member', 'active', 1)`,
          )
          await tx.run(
            `INSERT INTO user_audit(at, user_id, user_name, action, subject)
             VALUES (5, 1, 'owner', 'who', 'document 1'), (9, 1, 'owner', 'who', 'document 2')`,
          )
        })
        for (let opened = 0; opened < 2; opened++) {
          const users = await Users.open(ledger)
          assert.deepEqual(
            (await users.list()).map(({ id, name }) => [id, name]),
            [
              [OWNER_ID, 'owner'],
              [OWNER_ID + 1, 'ann'],
            ],
          )
          const noted = await users.audit({ limit: 10 })
          assert.deepEqual(
            noted.map(({ subject }) => subject),
            ['document 2', 'document 1'],
          )
        }
        const indexes =
          ledger.dialect === 'sqlite' ? 'sqlite_master WHERE name' : 'pg_indexes WHERE indexname'
        const made = await ledger.driver.read((tx) =>
          tx.all(`SELECT 1 AS made FROM ${indexes} = 'user_audit_at'`),
        )
        assert.equal(made.length, 1)
        assert.equal(await (await Users.open(ledger)).pruneAudit(6), 1)
      } finally {
        await leave()
      }
    })

    withUsers('what was done is listed with the newest first, page by page', async (users) => {
      const ann = await users.add(ANN)
      await users.note({ id: OWNER_ID, name: 'owner' }, 'view-as', 'ann@example.com')
      await users.note(ann, 'who', 'document 7')
      const [newest] = await users.audit({ limit: 1 })
      assert.deepEqual(
        [newest?.userName, newest?.action, newest?.subject],
        ['ann@example.com', 'who', 'document 7'],
      )
      const older = await users.audit({ limit: 10, before: newest!.id })
      assert.deepEqual(
        older.map(({ action }) => action),
        ['view-as'],
      )
    })

    withUsers('what was done is written down once in a while where that is enough', async (users) => {
      const owner = { id: OWNER_ID, name: 'owner' }
      for (let n = 0; n < 3; n++) await users.note(owner, 'view-as', 'ann: typed', { onceInMs: DAY_MS })
      await users.note(owner, 'view-as', 'ben: typed', { onceInMs: DAY_MS })
      await users.note({ id: 2, name: 'eve' }, 'view-as', 'ann: typed', { onceInMs: DAY_MS })
      await users.note(owner, 'who', 'document 7')
      await users.note(owner, 'who', 'document 7')
      assert.equal((await users.audit({ limit: 10 })).length, 5)
    })

    withUsers('what was done long ago is forgotten, and nothing else', async (users, { ledger }) => {
      const owner = { id: OWNER_ID, name: 'owner' }
      await ledger.driver.transaction((tx) =>
        tx.run(
          `INSERT INTO user_audit(at, user_id, user_name, action, subject)
           WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 2500)
           SELECT n, 1, 'owner', 'who', 'document' FROM n`,
        ),
      )
      await users.note(owner, 'who', 'document 7')
      assert.equal(await users.pruneAudit(2_001), 2_000)
      const left = await users.audit({ limit: 1_000 })
      assert.equal(left.length, 501)
      assert.equal(left.at(-1)?.atMs, 2_001)
    })
  })
}
