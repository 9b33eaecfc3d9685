import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { TidemarkError } from '../../base/errors.ts'
import type { JobRow } from '../../ledger/contract.ts'
import { exitCodes } from '../command.ts'
import { type Ending, endingsExitCode, endingWord } from './ending.ts'

const status = { text: '9 listed = 9 stored', isOpen: false, isWrong: false, bad: 0, json: {} }
const settled: Ending = {
  source: { name: 'ann@example.com', stream: 'mail:ann@example.com' },
  status,
  pause: undefined,
  obstacle: undefined,
  failed: [],
}
const error = new TidemarkError('The connection failed', { kind: 'transient' })
const away: Ending = { ...settled, obstacle: { where: 'cloud', error, sinceMs: 0, nextMs: 0 } }
const left: Ending = { ...settled, status: { ...status, isOpen: true } }

function ended(ending: Ending): unknown[] {
  return [false, true].flatMap((stopped) => [endingWord(ending, stopped), endingsExitCode([ending], stopped)])
}

describe('a sync that ended', () => {
  test('is done where everything is settled, stopped or not', () => {
    assert.deepEqual(ended(settled), ['done', exitCodes.ok, 'done', exitCodes.ok])
  })

  test('is not done where the service could not be asked, although all that was listed is stored', () => {
    assert.deepEqual(ended(away), ['not finished', exitCodes.failure, 'stopped', exitCodes.failure])
  })

  test('is stopped where something is left, and not finished where nobody stopped it', () => {
    assert.deepEqual(ended(left), ['not finished', exitCodes.failure, 'stopped', exitCodes.failure])
  })

  test('failed where a job failed, a stream is paused or counts do not agree', () => {
    const wrong: Ending[] = [
      { ...settled, failed: [{ id: 1 } as JobRow] },
      { ...settled, pause: { reason: 'by hand', hint: '' } },
      { ...settled, status: { ...status, isWrong: true } },
    ]
    for (const ending of wrong) assert.equal(endingsExitCode([settled, ending], false), exitCodes.failure)
  })

  test('ends with 3 where all is settled but for bad items, or something needs a person', () => {
    const bad: Ending = { ...settled, status: { ...status, bad: 2 } }
    const needs: Ending = { ...settled, status: { ...status, needsYou: true, word: 'waiting for you' } }
    assert.deepEqual(ended(bad), ['done', exitCodes.bad, 'done', exitCodes.ok])
    assert.deepEqual(ended(needs), ['waiting for you', exitCodes.bad, 'waiting for you', exitCodes.ok])
    assert.equal(endingsExitCode([bad, away], false), exitCodes.failure)
    assert.equal(endingsExitCode([bad, left], false), exitCodes.failure)
    // What needs a person says more than that the rest waits.
    assert.equal(endingsExitCode([needs, left], false), exitCodes.bad)
  })
})
