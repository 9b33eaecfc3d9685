import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { ApiError } from '../../../../../web/src/problem.ts'
import type { CleanUpProof } from '../../api/schemas.ts'
import {
  isSameWish,
  missingAccess,
  runState,
  startKind,
  stepsOf,
  type WishForm,
  watchProof,
  wishOf,
} from './clean-up.ts'

const FORM: WishForm = {
  account: 'ann@example.com',
  amount: '2',
  unit: 'y',
  query: ' from:bo ',
  action: 'trash',
}

describe('the wish of a clean-up', () => {
  test('is made of the form', () => {
    const wish = { account: 'ann@example.com', olderThan: '2y', query: 'from:bo', action: 'trash' }
    assert.deepEqual(wishOf(FORM), wish)
    assert.equal(wishOf({ ...FORM, amount: '007', unit: 'mo' })?.olderThan, '7mo')
  })

  test('is none without an account or an age', () => {
    for (const amount of ['', '-1', '1.5', '12345', 'x']) assert.equal(wishOf({ ...FORM, amount }), undefined)
    assert.equal(wishOf({ ...FORM, account: '' }), undefined)
  })

  test('is another as soon as one part differs', () => {
    assert.ok(isSameWish(wishOf(FORM), wishOf(FORM)))
    assert.ok(!isSameWish(wishOf(FORM), wishOf({ ...FORM, query: '' })))
    assert.ok(!isSameWish(undefined, undefined))
  })

  test('needs the access that its action needs', () => {
    assert.match(missingAccess('readonly', 'unlabel') ?? '', /only read/)
    assert.equal(missingAccess('modify', 'trash'), undefined)
    assert.match(missingAccess('modify', 'delete') ?? '', /full access/)
    assert.equal(missingAccess('full', 'delete'), undefined)
    assert.equal(missingAccess(null, 'delete'), undefined)
  })
})

describe('what can be done with a run', () => {
  const run = { trouble: null, canUndo: false, canResume: true }

  test('while it runs is to halt it or to give it up', () => {
    assert.deepEqual(stepsOf({ ...run, state: 'acting' }), ['halt', 'abandon'])
    assert.deepEqual(stepsOf({ ...run, state: 'acting', canUndo: true }), ['halt', 'abandon', 'undo'])
  })

  test('while it waits or is in trouble is to go on with it or to give it up', () => {
    assert.deepEqual(stepsOf({ ...run, state: 'planned' }), ['resume', 'abandon'])
    assert.deepEqual(stepsOf({ ...run, state: 'acting', trouble: 'halted' }), ['resume', 'abandon'])
  })

  test('when it is over is to undo it', () => {
    assert.deepEqual(stepsOf({ ...run, state: 'done', canResume: false, canUndo: true }), ['undo'])
    assert.deepEqual(stepsOf({ ...run, state: 'undone', canResume: false }), [])
  })

  test('is shown with the name of a state that is not known yet', () => {
    assert.deepEqual(runState({ state: 'new' }), { text: 'new', tone: 'neutral' })
  })
})

describe('the button that starts a clean-up', () => {
  const wish = { account: 'ann@example.com', olderThan: '2y', query: '' }

  test('is not the first choice before every message is proven', () => {
    for (const action of ['unlabel', 'trash', 'delete']) {
      assert.equal(startKind({ wish: { ...wish, action }, isFull: false }), 'plain')
    }
    assert.equal(startKind({ wish: { ...wish, action: 'trash' }, isFull: true }), 'primary')
    assert.equal(startKind({ wish: { ...wish, action: 'delete' }, isFull: true }), 'danger')
  })
})

describe('a proof', () => {
  const proof = (change: Partial<CleanUpProof> = {}): CleanUpProof => ({
    id: 7,
    state: 'running',
    looked: 0,
    trouble: null,
    plan: null,
    ...change,
  })
  const watched = async (looks: readonly (CleanUpProof | number)[]) => {
    const left = [...looks]
    const shown: string[] = []
    const end = await watchProof(proof(), {
      look: async () => {
        const next = left.shift()!
        if (typeof next === 'number') throw new ApiError({ status: next, title: `answer ${next}` })
        return next
      },
      show: ({ looked, trouble }) => shown.push(trouble === null ? `${looked}` : `${looked}, trouble`),
      pause: async () => {},
      isLeft: () => false,
    })
    return { end: end.state, shown }
  }

  test('is looked after beyond a server that is away for a while', async () => {
    const { end, shown } = await watched([
      proof({ looked: 3 }),
      0,
      503,
      proof({ looked: 5 }),
      proof({ state: 'done' }),
    ])
    assert.equal(end, 'done')
    assert.deepEqual(shown, ['0', '3', '3, trouble', '3, trouble', '5'])
  })

  test('that is refused, or failed for good, is over', async () => {
    await assert.rejects(watched([401]), /answer 401/)
    await assert.rejects(watched(Array.from({ length: 200 }, () => 0)), /answer 0/)
    assert.equal((await watched([proof({ state: 'failed' })])).end, 'failed')
  })
})
