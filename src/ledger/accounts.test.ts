import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import type { TidemarkError, UsageError } from '../base/errors.ts'
import { Accounts, accountKey, OWNER_ID } from './accounts.ts'
import { fileHome, type Home, memoryHome, postgresHome, type Site } from './home.suite.ts'
import { openLedger } from './open.ts'

const SEALED = new Uint8Array([1, 0, 255, 39, 92, 13, 10])
const ANN = { service: 'gmail', name: 'ann@example.com', settings: { spam: false }, sealed: SEALED }

for (const home of [memoryHome(), fileHome(), postgresHome()]) accountsContract(home)

function accountsContract(home: Home): void {
  describe(`accounts on ${home.name}`, () => {
    after(() => home.remove())
    const withAccounts = (title: string, fn: (accounts: Accounts, site: Site) => Promise<void>): void => {
      test(title, async () => {
        const site = await home.fresh()
        try {
          await fn(await Accounts.open(site.ledger), site)
        } finally {
          await site.leave()
        }
      })
    }

    withAccounts(
      'an account that was added is found, listed, and keeps its secret byte for byte',
      async (accounts, { clock }) => {
        const added = await accounts.add(ANN)
        const { service, name, settings } = ANN
        const expected = {
          id: added.id,
          service,
          name,
          settings,
          state: 'ready',
          userId: OWNER_ID,
          createdAtMs: clock.now(),
        }
        assert.deepEqual(added, expected)
        assert.deepEqual(await accounts.find('gmail', 'ann@example.com'), expected)
        assert.deepEqual(await accounts.list(), [expected])
        assert.deepEqual(await accounts.sealed(added.id), SEALED)
        assert.equal(accountKey(added), 'gmail:ann@example.com')
      },
    )

    withAccounts(
      'the client of a provider is kept byte for byte, replaced, and forgotten; it counts as sealed',
      async (accounts, { clock }) => {
        assert.equal(await accounts.hasSealed(), false)
        assert.equal(await accounts.client('google'), undefined)
        await accounts.setClient('google', new Uint8Array([9]))
        clock.pass(1_000)
        await accounts.setClient('google', SEALED)
        assert.deepEqual(await accounts.client('google'), { sealed: SEALED, setAtMs: clock.now() })
        assert.equal(await accounts.client('microsoft'), undefined)
        assert.equal(await accounts.hasSealed(), true)
        assert.deepEqual(
          [await accounts.removeClient('google'), await accounts.removeClient('google')],
          [true, false],
        )
        assert.equal(await accounts.hasSealed(), false)
        await accounts.add(ANN)
        assert.equal(await accounts.hasSealed(), true)
      },
    )

    withAccounts(
      'an account cannot be added twice, but its name is free in another service',
      async (accounts) => {
        await accounts.add(ANN)
        await assert.rejects(accounts.add(ANN), (error: UsageError) => error.code === 'account-exists')
        await accounts.add({ ...ANN, service: 'drive' })
        assert.deepEqual((await accounts.list()).map(accountKey), [
          'drive:ann@example.com',
          'gmail:ann@example.com',
        ])
        assert.deepEqual((await accounts.list('gmail')).map(accountKey), ['gmail:ann@example.com'])
        assert.equal(await accounts.find('gmail', 'bob@example.com'), undefined)
      },
    )

    withAccounts(
      'settings, state and secret change one by one, and together when it is connected again',
      async (accounts) => {
        const { id } = await accounts.add(ANN)
        await accounts.setState(id, 'sign-in')
        await accounts.setSettings(id, { spam: true, skipLabels: ['Größe', "'; DROP"] })
        assert.deepEqual((await accounts.find('gmail', ANN.name))?.settings, {
          spam: true,
          skipLabels: ['Größe', "'; DROP"],
        })
        assert.equal((await accounts.find('gmail', ANN.name))?.state, 'sign-in')
        const fresh = new Uint8Array([9, 9])
        await accounts.reconnect(id, { sealed: fresh, settings: { spam: false } })
        const again = await accounts.find('gmail', ANN.name)
        assert.deepEqual([again?.state, again?.settings], ['ready', { spam: false }])
        assert.deepEqual(await accounts.sealed(id), fresh)
      },
    )

    withAccounts(
      'a secret that somebody replaced meanwhile is not overwritten by who read the old one',
      async (accounts) => {
        const { id } = await accounts.add(ANN)
        const reconnected = new Uint8Array([2])
        assert.equal(await accounts.setSealed(id, reconnected), true)
        assert.equal(await accounts.setSealed(id, new Uint8Array([3]), SEALED), false)
        assert.deepEqual(await accounts.sealed(id), reconnected)
        assert.equal(await accounts.setSealed(id, new Uint8Array([3]), reconnected), true)
        assert.deepEqual(await accounts.sealed(id), new Uint8Array([3]))
      },
    )

    withAccounts(
      'a removed account is gone, its number is not used again, and changes to it say so',
      async (accounts) => {
        const { id } = await accounts.add(ANN)
        assert.equal(await accounts.remove(id), true)
        assert.equal(await accounts.remove(id), false)
        assert.deepEqual(await accounts.list(), [])
        const again = await accounts.add(ANN)
        assert.notEqual(again.id, id)
        const isGone = (error: TidemarkError): boolean =>
          error.kind === 'gone' && error.code === 'account-gone'
        await assert.rejects(accounts.setState(id, 'ready'), isGone)
        await assert.rejects(accounts.setSettings(id, {}), isGone)
        await assert.rejects(accounts.setSealed(id, SEALED), isGone)
        await assert.rejects(accounts.sealed(id), isGone)
        assert.equal(await accounts.setSealed(id, SEALED, SEALED), false)
      },
    )

    withAccounts('an account is of one user, and of another once it is given to them', async (accounts) => {
      const { id } = await accounts.add(ANN)
      await accounts.add({ ...ANN, name: 'bob@example.com', userId: 2 })
      const of = async (userId: number): Promise<string[]> =>
        (await accounts.ofUser(userId)).map(({ name }) => name)
      assert.deepEqual([await of(OWNER_ID), await of(2)], [['ann@example.com'], ['bob@example.com']])
      await accounts.setUser(id, 2)
      assert.deepEqual([await of(OWNER_ID), await of(2)], [[], ['ann@example.com', 'bob@example.com']])
    })

    withAccounts(
      'accounts of a ledger without users are those of the owner',
      async (_accounts, { ledger }) => {
        const earlier = [
          'DROP TABLE oauth_clients',
          'DROP INDEX accounts_user',
          'ALTER TABLE accounts DROP COLUMN user_id',
        ]
        await ledger.driver.transaction(async (tx) => {
          for (const sql of earlier) await tx.run(sql)
          await tx.run(
            `INSERT INTO accounts(service, name, settings, state, sealed, created_at) VALUES ('gmail', 'ann', '{}', 'ready', ?, 1)`,
            [SEALED],
          )
          await tx.run(`UPDATE app_schemas SET version = 1 WHERE app = 'accounts'`)
        })
        const [ann] = await (await Accounts.open(ledger)).ofUser(OWNER_ID)
        assert.deepEqual([ann?.name, ann?.userId], ['ann', OWNER_ID])
      },
    )

    if (!home.shared) return

    withAccounts('of two processes that add the same account one succeeds', async (accounts, site) => {
      const other = await openLedger(site.url, { clock: site.clock })
      try {
        const both = [accounts, await Accounts.open(other)].map((one) => one.add(ANN))
        const ended = await Promise.allSettled(both)
        assert.deepEqual(ended.map(({ status }) => status).sort(), ['fulfilled', 'rejected'])
        assert.equal((await accounts.list()).length, 1)
      } finally {
        await other.close()
      }
    })
  })
}
