import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { MailAccountView } from '../../../src/server/mail-api/schemas.ts'
import { accountState, quotaTier, safeAddress } from './account-state.ts'

const ACCOUNT: MailAccountView = {
  ...{ name: 'ann@example.com', stream: 'mail:ann@example.com', state: 'ready', phase: 'following' },
  ...{ access: 'modify', paused: false, watermarkMs: 0, checkedAtMs: 0 },
  ...{
    listed: 0,
    stored: 0,
    gone: 0,
    skipped: 0,
    bad: 0,
    onTheirWay: 0,
    files: 0,
    fileBytes: 0,
    rawBytes: 0,
  },
  ...{ damagedFiles: [], choices: { spam: false, trash: false, onlyLabels: [], skipLabels: [] } },
  ...{ unitsPerMinute: 6_000, labels: [] },
}

describe('an account', () => {
  test('is told by what needs somebody first', () => {
    assert.equal(accountState(ACCOUNT).text, 'In step')
    assert.equal(accountState({ ...ACCOUNT, phase: 'backfill' }).text, 'Copying')
    assert.equal(accountState({ ...ACCOUNT, paused: true }).tone, 'warn')
    assert.equal(accountState({ ...ACCOUNT, damagedFiles: ['a'], paused: true }).text, 'Damaged files')
    assert.equal(accountState({ ...ACCOUNT, state: 'sign-in', damagedFiles: ['a'] }).text, 'Sign in again')
  })

  test('has a quota with a name', () => {
    assert.equal(quotaTier(6_000), 'current tier')
    assert.match(quotaTier(15_000), /before May 2026/)
    assert.equal(quotaTier(1), 'set by hand')
  })
})

describe('an address to sign in at', () => {
  test('is one of the web', () => {
    assert.equal(safeAddress('https://accounts.google.com/o?a=b'), 'https://accounts.google.com/o?a=b')
    assert.equal(safeAddress('http://127.0.0.1:1/auth'), 'http://127.0.0.1:1/auth')
    assert.equal(safeAddress('javascript:alert(1)'), undefined)
    assert.equal(safeAddress('data:text/html,x'), undefined)
    assert.equal(safeAddress('nonsense'), undefined)
  })
})
