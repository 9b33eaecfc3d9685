import assert from 'node:assert/strict'
import { test } from 'node:test'
import { exitCodes } from '../command.ts'
import type { Standing } from './noun.ts'
import { statusCode } from './verbs.ts'

test('of several sources, the one that needs most decides over the exit code of a status', () => {
  const told: [Standing[], number][] = [
    [[], exitCodes.ok],
    [['settled', 'settled'], exitCodes.ok],
    [['settled', 'bad'], exitCodes.bad],
    [['going', 'bad'], exitCodes.ok],
    [['stopped', 'going', 'bad'], exitCodes.failure],
    [['needs', 'stopped'], exitCodes.bad],
    [['wrong', 'needs'], exitCodes.failure],
    [['missing', 'wrong'], exitCodes.usage],
  ]
  for (const [standings, code] of told) assert.equal(statusCode(standings), code, standings.join(', '))
})
