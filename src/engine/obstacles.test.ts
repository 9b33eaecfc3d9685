import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FakeClock } from '../base/clock.ts'
import { TidemarkError } from '../base/errors.ts'
import { Obstacles } from './obstacles.ts'

const down = new TidemarkError('The service is down', { kind: 'transient' })

test('nothing is in the way of a group that met nothing', () => {
  const obstacles = new Obstacles(new FakeClock())
  assert.equal(obstacles.waitMs('ann'), 0)
  assert.equal(obstacles.of('ann'), undefined)
})

test('all of a group wait, and no other group', async () => {
  const clock = new FakeClock()
  const obstacles = new Obstacles<'cloud'>(clock)
  assert.equal(obstacles.met('ann', 'cloud', down), 1_000)
  assert.equal(obstacles.waitMs('ann'), 1_000)
  assert.equal(obstacles.waitMs('bob'), 0)
  assert.equal(obstacles.of('ann')?.error, down)
})

test('when the time has come, one tries and the others go on waiting', async () => {
  const clock = new FakeClock()
  const obstacles = new Obstacles<'cloud'>(clock)
  obstacles.met('ann', 'cloud', down)
  await clock.advance(1_000)
  assert.equal(obstacles.waitMs('ann'), 0)
  assert.equal(obstacles.waitMs('ann'), 2_000)
})

test('the longer it lasts the longer the waits, up to a bound; what went well ends it', async () => {
  const clock = new FakeClock()
  const obstacles = new Obstacles<'cloud'>(clock)
  obstacles.met('ann', 'cloud', down)
  await clock.advance(10_000)
  assert.equal(obstacles.met('ann', 'cloud', down), 5_000)
  await clock.advance(600_000)
  assert.equal(obstacles.met('ann', 'cloud', down), 30_000)
  obstacles.over('ann')
  assert.equal(obstacles.waitMs('ann'), 0)
})

test('what people put right in their own time is waited for longer, and tried at once where it may be over', async () => {
  const clock = new FakeClock()
  const obstacles = new Obstacles<'quota'>(clock)
  const waits = { waitMsMin: 60_000, waitMsMax: 300_000 }
  assert.equal(obstacles.met('ann', 'quota', down, waits), 60_000)
  await clock.advance(3_600_000)
  assert.equal(obstacles.met('ann', 'quota', down, waits), 300_000)
  assert.equal(obstacles.waitMs('ann'), 300_000)
  obstacles.maybeOver('ann')
  assert.equal(obstacles.waitMs('ann'), 0)
  assert.equal(obstacles.of('ann')?.error, down)
})
