import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, afterEach, before, beforeEach, describe, test } from 'node:test'
import { TidemarkError } from '../../base/errors.ts'
import { openVault } from '../../base/vault.ts'
import { Accounts } from '../../ledger/accounts.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import { openLedger } from '../../ledger/open.ts'
import { keepAccount, levelOfAccount } from '../account-keeping.ts'
import { type AccountStore, openSecret } from '../account-store.ts'
import { type ScriptedServer, sendJson, startServer } from '../scripted-server.suite.ts'
import { newToken } from '../token-source.ts'
import { ONEDRIVE, type OneDriveProfile, oneDriveService, readOneDriveProfile } from './account.ts'
import { ONEDRIVE_SCOPES, type OneDriveSecret } from './auth.ts'

const SECRET: OneDriveSecret = {
  kind: 'oauth',
  clientId: 'app',
  refreshToken: 'refresh',
  accessToken: 'access',
  obtainedAtMs: 0,
  scopes: [...ONEDRIVE_SCOPES.readwrite],
}

const hasCode =
  (code: string) =>
  (error: unknown): boolean =>
    error instanceof TidemarkError && error.code === code

describe('whose account it is', () => {
  let server: ScriptedServer
  let person: Record<string, unknown>
  let hasDrive: boolean
  before(async () => {
    server = await startServer((request, answer) => {
      assert.equal(request.headers.authorization, 'Bearer access')
      if (request.path === '/me') sendJson(answer, person)
      else if (hasDrive) sendJson(answer, { id: 'abc', driveType: 'personal', quota: { total: 5, used: 2 } })
      else sendJson(answer, { error: { code: 'itemNotFound', message: 'There is no site.' } }, 404)
    })
  })
  after(() => server.close())
  beforeEach(() => {
    hasDrive = true
  })

  const read = (): Promise<OneDriveProfile> => readOneDriveProfile(server.url, newToken('access'))
  const nameFor = async (fields: object): Promise<string> => {
    person = { id: '0123ABCD', displayName: 'Mary', ...fields }
    return (await read()).name
  }

  test('is its mail address in small letters, and with it comes the drive', async () => {
    person = { id: '0123ABCD', mail: "Mary.O'Dell+x@Example.com", userPrincipalName: 'mary@live.com' }
    const { userId, name, drive } = await read()
    assert.deepEqual([userId, name, drive.type], ['0123ABCD', "mary.o'dell+x@example.com", 'personal'])
    assert.deepEqual([drive.quota?.usedBytes, drive.quota?.totalBytes], [2, 5])
  })

  test('is the name to sign in with where there is no mail, and the id where that is no address', async () => {
    assert.equal(await nameFor({ mail: null, userPrincipalName: 'mary@live.com' }), 'mary@live.com')
    assert.equal(await nameFor({}), '0123abcd')
  })

  test('is not believed where it is no address: the id takes its place', async () => {
    for (const mail of [
      '',
      'mary',
      '../../etc',
      'a@b; rm -rf x',
      'a@b\n',
      'a\u001b[2J@b',
      'a\u202e@b',
      'a@b@c',
    ]) {
      assert.equal(await nameFor({ mail }), '0123abcd', JSON.stringify(mail))
    }
    for (const id of ['../x', 'a b', 'x'.repeat(300), '\u001b[2J']) {
      await assert.rejects(nameFor({ id }), hasCode('not-onedrive'), JSON.stringify(id))
    }
  })

  test('is of no use without a drive, which is said', async () => {
    hasDrive = false
    await assert.rejects(nameFor({ mail: 'mary@example.com' }), hasCode('no-drive'))
  })
})

describe('a OneDrive account that is kept', () => {
  let ledger: Ledger
  let store: AccountStore
  beforeEach(async () => {
    ledger = await openLedger('sqlite::memory:')
    const env = { TIDEMARK_MASTER_KEY: randomBytes(32).toString('base64') }
    store = { accounts: await Accounts.open(ledger), vault: await openVault({ env, home: '/' }) }
  })
  afterEach(() => ledger.close())

  type Who = { id: string; name: string }
  const profile = (id: string, name: string): Who => ({ id, name })
  const keep = (who: Who, secret = SECRET, level: 'readonly' | 'readwrite' = 'readwrite') =>
    keepAccount(store, oneDriveService, { profile: who, secret, level })
  const kept = async (): Promise<string> => {
    const [account] = await store.accounts.list(ONEDRIVE)
    return oneDriveService.parse(await openSecret({ ...store, account: account! })).refreshToken
  }
  const levelOf = (settings: object, scopes: string[]) =>
    oneDriveService.levelOf({ ...SECRET, scopes }, { ...settings })

  test('gets a new secret when it is connected again, and is ready', async () => {
    const first = await keep(profile('u1', 'ann@example.com'))
    assert.deepEqual([first.name, first.before], ['ann@example.com', undefined])
    const [account] = await store.accounts.list(ONEDRIVE)
    await store.accounts.setState(account!.id, 'sign-in')
    const second = await keep(profile('u1', 'ann@example.com'), { ...SECRET, refreshToken: 'newer' })
    assert.equal(second.before?.level, 'readwrite')
    const [now, ...rest] = await store.accounts.list(ONEDRIVE)
    assert.deepEqual([now?.id, now?.state, rest], [account?.id, 'ready', []])
    assert.equal(await kept(), 'newer')
  })

  test('keeps its name when the address of its person changes, and with it its folders', async () => {
    await keep(profile('u1', 'ann@example.com'))
    assert.equal((await keep(profile('u1', 'ann.new@example.com'))).name, 'ann@example.com')
    assert.equal((await store.accounts.list(ONEDRIVE)).length, 1)
  })

  test('is not taken over by another person who has got its address', async () => {
    await keep(profile('u1', 'ann@example.com'))
    const other = { ...SECRET, refreshToken: 'of another' }
    await assert.rejects(keep(profile('u2', 'ann@example.com'), other), hasCode('other-account'))
    assert.equal(await kept(), 'refresh')
  })

  test('may do no more than was asked for, though Microsoft gives what was allowed before', async () => {
    await keep(profile('u1', 'ann@example.com'), SECRET, 'readonly')
    const [account] = await store.accounts.list(ONEDRIVE)
    assert.equal(await levelOfAccount(oneDriveService, { ...store, account: account! }), 'readonly')
    assert.equal(levelOf({}, SECRET.scopes), 'readwrite')
    assert.equal(levelOf({}, ['Files.Read']), 'readonly')
    assert.equal(levelOf(account!.settings, ['User.Read']), undefined)
  })

  test('is not kept with less than was asked for', async () => {
    const less = { ...SECRET, scopes: ['Files.Read'] }
    await assert.rejects(keep(profile('u1', 'ann@example.com'), less), hasCode('scope-missing'))
    assert.deepEqual(await store.accounts.list(), [])
  })

  test('is mended by connecting it when its secret cannot be opened any more', async () => {
    await keep(profile('u1', 'ann@example.com'))
    const env = { TIDEMARK_MASTER_KEY: randomBytes(32).toString('base64') }
    store = { ...store, vault: await openVault({ env, home: '/' }) }
    assert.equal((await keep(profile('u1', 'ann@example.com'))).before?.level, undefined)
    assert.equal(await kept(), 'refresh')
  })
})
