import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { MailAccountView } from '../api/schemas.ts'
import { mailState, quotaTier, verifiedText } from './account-state.ts'

const ACCOUNT: MailAccountView = {
  stream: 'mail:ann@example.com',
  phase: 'following',
  paused: false,
  watermarkMs: 0,
  watermarkAsOfMs: 0,
  checkedAtMs: 0,
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
  gmail: null,
  leftOut: null,
  inGmail: null,
  whole: null,
  missing: 0,
  lost: 0,
  lostImports: 0,
  verified: null,
  damagedFiles: [],
  choices: { spam: false, trash: false, onlyLabels: [], skipLabels: [] },
  unitsPerMinute: 6_000,
  labels: [],
}

describe('an account', () => {
  test('is told by what needs somebody first', () => {
    assert.equal(mailState(ACCOUNT).text, 'In step')
    assert.equal(mailState({ ...ACCOUNT, phase: 'backfill' }).text, 'Copying')
    assert.equal(mailState({ ...ACCOUNT, paused: true }).tone, 'warn')
    assert.equal(mailState({ ...ACCOUNT, damagedFiles: ['a'], paused: true }).text, 'Damaged files')
    assert.equal(mailState({ ...ACCOUNT, missing: 2, paused: true }).text, 'Mail is missing')
    assert.equal(mailState({ ...ACCOUNT, lostImports: 1 }).text, 'Mail is lost')
  })

  test('says what the last check found', () => {
    const verified = { atMs: 1, messages: 1_200, damaged: 0, brokenFiles: 0, missing: 0 }
    assert.equal(verifiedText(verified), '1,200 messages, all well')
    assert.match(verifiedText({ ...verified, missing: null }), /not compared with Gmail/)
    assert.match(verifiedText({ ...verified, damaged: 1 }), /damage found/)
    assert.match(verifiedText(null), /no message was read back yet/)
  })

  test('has a quota with a name', () => {
    assert.equal(quotaTier(6_000), 'current tier')
    assert.match(quotaTier(15_000), /before May 2026/)
    assert.equal(quotaTier(1), 'set by hand')
  })
})
