import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { keepsText, shownSettings } from '../../app/accounts/account-use.ts'
import { mailAccountUse } from './account-use.ts'

const choices = mailAccountUse.choices!
const uses = new Map([['mail', mailAccountUse]])
const DEFAULTS = { spam: false, trash: true, onlyLabels: [], skipLabels: [] }

describe('what is chosen for the mail of an account', () => {
  test('stands under the name of the app, beside what others keep there', () => {
    const settings = choices.write({ userId: 'u1', assistant: { tone: 'short' } }, { spam: true })
    assert.deepEqual(settings, {
      userId: 'u1',
      assistant: { tone: 'short' },
      mail: { ...DEFAULTS, spam: true },
    })
    assert.deepEqual(choices.write(settings, { trash: false }).mail, {
      ...DEFAULTS,
      spam: true,
      trash: false,
    })
  })

  test('is read from rows of before, where it stood in the settings themselves, and moved with the next choice', () => {
    const old = { spam: true, trash: false, onlyLabels: ['Work'], skipLabels: [] }
    assert.deepEqual(choices.read(old), old)
    assert.deepEqual(choices.write(old, { trash: true }), { mail: { ...old, trash: true } })
  })

  test('is told as it always was, wherever it stands', async () => {
    const settings = choices.write({}, { skipLabels: ['News'] })
    assert.deepEqual(shownSettings(uses, settings), { ...DEFAULTS, skipLabels: ['News'] })
    const account = {
      id: 1,
      service: 'gmail',
      name: 'a@b',
      settings,
      state: 'ready',
      userId: 1,
      createdAtMs: 0,
    } as const
    const place = { ledger: undefined as never, home: '/' }
    assert.equal(await keepsText(uses, account, place), 'all, without spam, without News')
  })
})
