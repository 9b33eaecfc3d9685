/** What the user says about their mail is learned from, and what they take back is not. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { SERVICE } from './account.ts'
import { correctCategory, undoEvent } from './actions.ts'
import { changeExample, dropExample, getExamples } from './api/rules.ts'
import type { ExampleView } from './api/schemas.ts'
import { ANN, bySubject } from './assist-world.suite.ts'
import type { Category } from './contract.ts'
import { deleteExample } from './learning.ts'
import { onboardedWorlds } from './onboarded-worlds.suite.ts'

const begun = onboardedWorlds()

describe('what the assistant learns from', () => {
  const CORRECTED = 14

  test('is what the user said last, where they have said much', async () => {
    const w = await begun({ models: { script: bySubject({ Sample: 'fyi' }) } })
    for (let n = 1; n <= CORRECTED; n++) {
      const { threadId: thread } = w.arrive({ subject: `Sample ${n}.` })
      await w.sync()
      await correctCategory(w.place, { account: ANN, thread }, 'waiting')
      await w.settled()
    }
    w.arrive({ subject: 'Sample of another kind' })
    await w.sync()
    const prompt = w.sim.models.asked
      .at(-1)!
      .messages.map(({ text }) => text)
      .join()
    const shown = Array.from({ length: CORRECTED }, (_, n) => n + 1).filter((n) =>
      prompt.includes(`Sample ${n}.`),
    )
    assert.deepEqual(shown, [3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14])
  })

  test('is not what they have taken back, switched off or forgotten, which is theirs alone to do', async () => {
    const w = await begun({ models: { script: bySubject({ Sample: 'fyi' }) } })
    const threads: string[] = []
    for (const subject of ['Sample one.', 'Sample two.', 'Sample three.', 'Sample four.']) {
      const { threadId: thread } = w.arrive({ subject })
      threads.push(thread)
      await w.sync()
      await correctCategory(w.place, { account: ANN, thread }, 'waiting')
      await w.settled()
    }
    const moved = (await w.tables.events(ANN, { thread: threads[0]! })).find(
      ({ what }) => what === 'corrected',
    )
    await undoEvent(w.place, ANN, moved!.id)
    await w.settled()
    const { accounts, ledger, tables, kinds } = w.worker
    const services = { accounts, ledger, clock: w.clock, assist: { tables, kinds } } as never
    const { userId: id } = (await accounts.find(SERVICE, ANN))!
    const user = { id, name: 'ann', role: 'member' }
    const listed = async (): Promise<ExampleView[]> =>
      ((await getExamples.handle({ query: {}, user } as never, services)) as { items: ExampleView[] }).items
    const [four, three, two] = await listed()
    assert.deepEqual(
      [four, three, two].map((one) => one!.thread),
      threads.slice(1).reverse(),
    )
    const stranger = { ...user, id: id + 1 }
    const ofThree = { params: { id: three!.id }, body: { isOn: false } }
    await assert.rejects(
      async () => changeExample.handle({ ...ofThree, user: stranger } as never, services),
      /no example/,
    )
    await changeExample.handle({ ...ofThree, user } as never, services)
    await dropExample.handle({ params: { id: two!.id }, user } as never, services)
    assert.deepEqual(
      (await listed()).map((one) => one.isOn),
      [true, false],
    )
    w.arrive({ subject: 'Sample of another kind' })
    await w.sync()
    const prompt = w.sim.models.asked
      .at(-1)!
      .messages.map(({ text }) => text)
      .join()
    const names = ['one', 'two', 'three', 'four'].filter((name) => prompt.includes(`Sample ${name}.`))
    assert.deepEqual(names, ['four'])
  })

  test('is what still stands of what they said, where they take back one of several words about a conversation', async () => {
    const w = await begun({ models: { script: bySubject({ Sample: 'fyi' }) } })
    const { threadId: thread } = w.arrive({ subject: 'Sample.' })
    await w.sync()
    const learned = async (): Promise<(string | null)[]> =>
      (await w.tables.examples(ANN)).map(({ category }) => category)
    const said: number[] = []
    const say = async (category: Category): Promise<void> => {
      await correctCategory(w.place, { account: ANN, thread }, category)
      await w.settled()
      said.push((await w.tables.events(ANN, { thread })).find(({ what }) => what === 'corrected')!.id)
    }
    const takeBack = async (n: number): Promise<void> => {
      await undoEvent(w.place, ANN, said[n]!)
      await w.settled()
    }
    await say('waiting')
    await say('action_required')
    await say('payment_request')
    await takeBack(1)
    assert.deepEqual(await learned(), ['payment_request'])
    await takeBack(2)
    assert.deepEqual(await learned(), ['waiting'])
    await deleteExample(w.kinds, { account: ANN, id: (await w.tables.examples(ANN))[0]!.id })
    w.clock.aheadMs += 1_000
    await say('action_required')
    await takeBack(3)
    assert.deepEqual(await learned(), [], 'what was forgotten by hand does not come back')
  })

  test('is not an answer that they asked for by a label and took back', async () => {
    const w = await begun({ models: { script: bySubject({ Sample: 'fyi' }) } })
    const { threadId: thread } = w.arrive({ subject: 'Sample.' })
    await w.sync()
    w.mailbox().modifyThread(thread, { add: [await w.labelId('needs_response')] })
    await w.sync()
    assert.deepEqual(
      (await w.tables.examples(ANN)).map(({ category }) => category),
      ['needs_response'],
    )
    const asked = (await w.tables.events(ANN, { thread })).find(({ what }) => what === 'asked')!
    await undoEvent(w.place, ANN, asked.id)
    await w.settled()
    assert.deepEqual(await w.tables.examples(ANN), [])
  })
})
