import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { planCases } from './cases.ts'
import { betterRun, chosenCases } from './index.ts'

describe('the plan of the engine bench', () => {
  test('every case has a name of its own and at least one subject', () => {
    for (const quick of [true, false]) {
      const cases = planCases({ quick })
      assert.equal(new Set(cases.map((one) => one.name)).size, cases.length)
      assert.ok(cases.every((one) => one.subjects.length > 0))
    }
  })

  test('tidemark takes part in every case that compares durable engines', () => {
    const compared = planCases({ quick: false }).filter((one) => !/^raw|normal/.test(one.name))
    assert.ok(compared.length > 0)
    assert.ok(compared.every((one) => one.subjects.some((subject) => subject.name === 'tidemark')))
  })

  test('only what is named is run: a case with all its subjects, or a subject in all its cases', () => {
    const [drain] = chosenCases({ quick: true, only: ['sqlite full: drain, 10'] })
    assert.ok(drain && drain.subjects.length > 1)
    const boss = chosenCases({ quick: true, only: ['pg-boss'] })
    assert.ok(boss.length > 1)
    assert.ok(boss.every((one) => one.subjects.length === 1 && one.subjects[0]?.name === 'pg-boss'))
    assert.deepEqual(chosenCases({ quick: true, only: ['no such thing'] }), [])
  })

  test('of two runs the better counts, as a whole', () => {
    const latency = { metrics: [{ suffix: '', unit: 'ms', better: 'lower' as const }] }
    const speed = { metrics: [{ suffix: '', unit: 'jobs/s', better: 'higher' as const }] }
    assert.deepEqual(betterRun([2, 3], [1, 9], latency), [1, 9])
    assert.deepEqual(betterRun([2], [1], speed), [2])
    assert.deepEqual(betterRun(undefined, [1], speed), [1])
  })
})
