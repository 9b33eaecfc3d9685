import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { TidemarkError } from '../../../base/errors.ts'
import {
  ADDRESS,
  type Bench,
  cleanUpBench,
  damageLabels,
  labelsOf,
  MARK_S,
  ran,
  tamper,
  undone,
  wantedRun,
} from './clean-up.suite.ts'
import { SurveyProgress, surveyFrom, surveyRun } from './survey.ts'

test('a dry run tells every class and changes nothing', async (t) => {
  const bench = await cleanUpBench(t, { old: 7, young: 2 })
  const [bad, tampered, starred, gone] = bench.oldIds as [string, string, string, string]
  await bench.registerBad(bad)
  await tamper(bench, tampered)
  bench.mailbox.modify(starred, { add: ['STARRED'] })
  bench.mailbox.delete(gone)
  await bench.importMessage()
  const before = labelsOf(bench)
  const look = (depth: 'full' | 'index') =>
    surveyRun({
      run: wantedRun({ action: 'trash' }),
      depth,
      account: bench.account,
      ledger: bench.engine.ledger,
      tables: bench.tables,
      clock: bench.engine.clock,
      signal: new AbortController().signal,
    })
  const survey = await look('full')
  assert.equal(survey.proven.messages, 3)
  assert.equal(survey.freedBytes, survey.proven.bytes)
  const counts = Object.entries(survey.refused).map(([what, sum]) => [
    what === 'unreadable' ? 'mismatch' : what,
    sum.messages,
  ])
  assert.deepEqual(counts.sort(), [
    ['bad', 1],
    ['changed', 1],
    ['gone', 1],
    ['imported', 1],
    ['mismatch', 1],
  ])
  assert.equal(survey.markS, MARK_S)
  const quick = await look('index')
  assert.equal(quick.proven.messages, 6)
  assert.deepEqual(labelsOf(bench), before)
  assert.deepEqual(await (await bench.runs.journal()).runs(), [])
})

/** How often Gmail is asked for messages one by one, and for its history. */
function counted({ account: { client } }: Bench): { messages: number; pages: number } {
  const asked = { messages: 0, pages: 0 }
  const [getLabels, history] = [client.getLabels.bind(client), client.history.bind(client)]
  client.getLabels = (ids, options) => {
    asked.messages += ids.length
    return getLabels(ids, options)
  }
  client.history = (page) => {
    asked.pages += 1
    return history(page)
  }
  return asked
}

const dryRun = (bench: Bench, action: 'trash' | 'delete' = 'trash') =>
  surveyRun({
    run: wantedRun({ action }),
    depth: 'full' as const,
    account: bench.account,
    ledger: bench.engine.ledger,
    tables: bench.tables,
    clock: bench.engine.clock,
    signal: new AbortController().signal,
  })

test('a full dry run and a run that can be undone ask for the history, and for no message', async (t) => {
  const bench = await cleanUpBench(t, { old: 220, young: 1 })
  const asked = counted(bench)
  assert.equal((await dryRun(bench, 'delete')).proven.messages, 220)
  assert.deepEqual(asked, { messages: 0, pages: 3 }, 'a page to begin with, and one for each batch of 200')
  const run = await ran(bench, { action: 'trash' })
  assert.equal(run.done, 220)
  assert.equal(asked.messages, 0)
  await undone(bench, run)
  assert.equal(asked.messages, 0)
})

test('a full dry run lists labels where the history has expired, and asks for no message', async (t) => {
  const bench = await cleanUpBench(t, { old: 220, young: 1 })
  const [starred, gone] = bench.oldIds as [string, string]
  bench.mailbox.modify(starred, { add: ['STARRED'] })
  bench.mailbox.delete(gone)
  bench.mailbox.expireHistory()
  const asked = counted(bench)
  const survey = await dryRun(bench)
  assert.deepEqual(
    [survey.proven.messages, survey.refused.changed?.messages, survey.refused.gone?.messages],
    [218, 1, 1],
  )
  assert.equal(asked.messages, 0)
})

test('with an expired history, messages that are too new and labels that decide nothing are not listed', async (t) => {
  const bench = await cleanUpBench(t, { old: 60, young: 600 })
  const { client } = bench.account
  for (const id of bench.oldIds) bench.mailbox.modify(id, { add: ['IMPORTANT', 'CATEGORY_UPDATES'] })
  await bench.resync()
  bench.mailbox.modify(bench.oldIds[0]!, { remove: ['UNREAD'] })
  bench.mailbox.modify(bench.oldIds[1]!, { add: ['STARRED'] })
  bench.mailbox.expireHistory()
  const listed: string[] = []
  const listIds = client.listIds.bind(client)
  client.listIds = (page) => {
    listed.push(page.labelIds?.[0] ?? 'all')
    return listIds(page)
  }
  const survey = await dryRun(bench)
  assert.deepEqual([survey.proven.messages, survey.refused.changed?.messages], [59, 1])
  assert.deepEqual(
    listed.filter((id) => id === 'all' || /^(?:UNREAD|IMPORTANT|CATEGORY_)/.test(id)),
    ['all'],
  )
  assert.equal(listed.length, new Set(listed).size, 'one page of each')
})

test('a deletion for good asks for each message just before', async (t) => {
  const bench = await cleanUpBench(t, { old: 5, young: 0 })
  const asked = counted(bench)
  await ran(bench, { action: 'delete' })
  assert.equal(asked.messages, 5)
})

test('a message whose labels are noted as stale is asked for, not taken from the history', async (t) => {
  const bench = await cleanUpBench(t, { old: 3, young: 0 })
  const starred = bench.oldIds[1]!
  bench.mailbox.modify(starred, { add: ['STARRED'] })
  // As the history leaves it: it has told of the star, and no fetch has brought it yet.
  const { historyId } = await bench.account.client.profile()
  await bench.noteStale([starred])
  await bench.setCursor(historyId)
  const asked = counted(bench)
  const survey = await dryRun(bench)
  assert.deepEqual([survey.proven.messages, survey.refused.changed?.messages], [2, 1])
  assert.equal(asked.messages, 1)
})

test('labels that were put back from an older backup are not trusted: each message is asked for', async (t) => {
  const bench = await cleanUpBench(t, { old: 4, young: 0 })
  const starred = bench.oldIds[1]!
  await bench.putBackAfter(async () => {
    bench.mailbox.modify(starred, { add: ['STARRED'] })
    await bench.resync()
  })
  const asked = counted(bench)
  const survey = await dryRun(bench)
  assert.deepEqual([survey.proven.messages, survey.refused.changed?.messages], [3, 1])
  assert.equal(asked.messages, 4)
  const run = await ran(bench, { action: 'trash' })
  assert.deepEqual([run.done, run.refused], [3, 1])
  assert.ok(!bench.mailbox.get(starred)!.labelIds.has('TRASH'))
})

test('a message whose labels in the archive are damaged is refused, whatever happens to it later', async (t) => {
  const bench = await cleanUpBench(t, { old: 3, young: 0 })
  const [starred, other] = bench.oldIds as [string, string]
  bench.mailbox.modify(starred, { add: ['STARRED'] })
  await bench.resync()
  for (const id of [starred, other]) await damageLabels(bench, id)
  // As the history tells it: what is not known cannot be changed into something that is.
  const { historyId } = await bench.account.client.profile()
  await bench.account.archive.apply([{ id: starred, historyId, addLabelIds: ['IMPORTANT'] }])
  const run = await ran(bench, { action: 'trash' })
  assert.deepEqual([run.done, run.refused], [1, 2])
  const tallies = await (await bench.runs.journal()).tallies(run.id)
  assert.equal(tallies.find(({ state }) => state === 'refused')?.class, 'unreadable')
  await bench.resync()
  assert.deepEqual((await bench.account.archive.message(other))!.labelIds, ['INBOX', 'UNREAD'])
})

test('where the history has expired, each message is asked for', async (t) => {
  const bench = await cleanUpBench(t, { old: 4, young: 0 })
  bench.mailbox.modify(bench.oldIds[0]!, { add: ['STARRED'] })
  bench.mailbox.delete(bench.oldIds[1]!)
  bench.mailbox.expireHistory()
  const asked = counted(bench)
  const survey = await dryRun(bench)
  assert.deepEqual([survey.proven.messages, Object.keys(survey.refused).sort()], [2, ['changed', 'gone']])
  assert.equal(asked.messages, 4)
})

test('a proof that somebody asked for does not wait for the fetches of a sync', async (t) => {
  const bench = await cleanUpBench(t, { old: 3, young: 0 })
  await bench.keepBusy()
  const wish = { account: ADDRESS, olderThan: '2y', query: '', action: 'trash' } as const
  const { approved: _, ...run } = wantedRun({ action: 'trash' })
  const { id } = await bench.runs.prove({ wish, run })
  const stateOf = async () => (await bench.runs.proof(id))?.state
  for (let turn = 0; turn < 12_000 && (await stateOf()) === 'running'; turn++) await pause(20)
  assert.equal(await stateOf(), 'done')
})

test('a survey that was interrupted goes on after the last page that it told of', async (t) => {
  const bench = await cleanUpBench(t, { old: 510, young: 1 })
  const input = {
    run: wantedRun({ action: 'trash' }),
    depth: 'full' as const,
    account: bench.account,
    ledger: bench.engine.ledger,
    tables: bench.tables,
    clock: bench.engine.clock,
    signal: new AbortController().signal,
  }
  let saved = ''
  const killed = surveyFrom({
    ...input,
    onPage: async (progress) => {
      saved = JSON.stringify(progress)
      throw new Error('killed')
    },
  })
  await assert.rejects(killed, /killed/)
  const from = SurveyProgress.parse(JSON.parse(saved))
  assert.deepEqual([from.looked, from.survey.proven.messages], [500, 500])
  const looks: number[] = []
  const { survey, looked } = await surveyFrom({ ...input, from, onLook: (messages) => looks.push(messages) })
  assert.deepEqual([looks, looked, survey.proven.messages], [[510], 510, 510])
  assert.equal(survey.freedBytes, survey.proven.bytes)
})

test('a dry run asks again where the connection was reset, and not where Gmail refuses it', async (t) => {
  const bench = await cleanUpBench(t, { old: 3, young: 0 })
  const { client } = bench.account
  const history = client.history.bind(client)
  let resets = 2
  client.history = (page) => {
    if (resets-- > 0) throw new TidemarkError('the connection was reset', { kind: 'transient' })
    return history(page)
  }
  assert.equal((await dryRun(bench)).proven.messages, 3)
  client.history = () => {
    throw new TidemarkError('no such account', { kind: 'permanent' })
  }
  await assert.rejects(dryRun(bench), /no such account/)
})
