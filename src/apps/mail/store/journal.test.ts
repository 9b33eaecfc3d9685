import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { freshDatabase, type TestDatabase } from '../../../../scripts/test-database.ts'
import type { Tx } from '../../../ledger/contract.ts'
import type { Ledger } from '../../../ledger/ledger.ts'
import { openLedger } from '../../../ledger/open.ts'
import { ArchiveJournal, type NewRun } from './journal.ts'
import {
  addEntries,
  addRun,
  approveRun,
  beginUndo,
  endRunIfSettled,
  endUndoIfSettled,
  moveRun,
  noteDone,
  noteInserting,
  noteIntents,
  notePlanned,
  noteRefused,
  noteUndone,
  openBatches,
  retryFailedUndo,
} from './journal-writes.ts'
import { noteListed } from './tables.ts'

const RUN: NewRun = {
  account: 'ann@example.com',
  action: 'trash',
  label: null,
  query: 'from:x "y"',
  cutoffMs: 1_600_000_000_123,
  messagesMax: null,
  approved: true,
}

function candidate(id: string, batch = 0) {
  return {
    id,
    batch,
    internalMs: 1_500_000_000_000 + Number(id.slice(1)),
    bytes: 10,
    labelIds: ['INBOX', `L"'${id}`],
  }
}

async function sqliteLedger(): Promise<{ ledger: Ledger; end: () => Promise<void> }> {
  const folder = mkdtempSync(join(tmpdir(), 'tidemark-journal-'))
  const ledger = await openLedger(`sqlite:${join(folder, 'ledger.db')}`)
  return {
    ledger,
    end: async () => {
      await ledger.close()
      rmSync(folder, { recursive: true })
    },
  }
}

async function postgresLedger(): Promise<{ ledger: Ledger; end: () => Promise<void> }> {
  const database: TestDatabase = await freshDatabase()
  const ledger = await openLedger(database.url)
  return {
    ledger,
    end: async () => {
      await ledger.close()
      await database.drop()
    },
  }
}

for (const [name, open] of [
  ['SQLite', sqliteLedger],
  ['PostgreSQL', postgresLedger],
] as const) {
  describe(`the journal on ${name}`, async () => {
    const { ledger, end } = await open()
    after(end)
    const journal = await ArchiveJournal.open(ledger)
    const write = <T>(fn: (tx: Tx) => Promise<T>): Promise<T> => ledger.driver.transaction(fn)
    let accounts = 0

    /** A run of an account of its own, with its candidates planned. */
    async function planned(ids: readonly string[], options: Partial<NewRun> = {}): Promise<number> {
      accounts += 1
      const run = (await write((tx) => addRun(tx, { ...RUN, account: `a${accounts}`, ...options }, 5)))!
      await write(async (tx) => {
        await addEntries(
          tx,
          run,
          ids.map((id, at) => candidate(id, Math.floor(at / 2))),
        )
        await notePlanned(tx, run, {
          passedOver: { bad: { messages: 1, bytes: 2, example: 'x' } },
          unsearched: ['s'],
        })
        await moveRun(tx, run, { from: ['planning'], to: 'acting' })
      })
      return run
    }

    test('a run and its entries are read back as they were written', async () => {
      const run = await planned(['m1', 'm2', 'm3'], { label: 'Label_1', messagesMax: 7, approved: false })
      const row = await journal.run(run)
      assert.equal(row?.query, RUN.query)
      assert.equal(row?.cutoffMs, RUN.cutoffMs)
      assert.deepEqual([row?.label, row?.messagesMax, row?.approved], ['Label_1', 7, false])
      assert.deepEqual([row?.planned, row?.plannedBytes, row?.state], [3, 30, 'acting'])
      assert.deepEqual(row?.passedOver, { bad: { messages: 1, bytes: 2, example: 'x' } })
      assert.deepEqual(row?.unsearched, ['s'])
      const [first] = await journal.entries(run, 0, 'open')
      assert.deepEqual(first?.labelIds, ['INBOX', `L"'m1`])
      assert.equal(first?.internalMs, 1_500_000_000_001)
      assert.deepEqual(await write((tx) => openBatches(tx, run, 'open')), [0, 1])
    })

    test('an account has one unfinished run at a time', async () => {
      const account = 'single'
      const first = await write((tx) => addRun(tx, { ...RUN, account }, 1))
      assert.equal(await write((tx) => addRun(tx, { ...RUN, account }, 2)), undefined)
      assert.equal((await journal.unfinished(account))?.id, first)
      await write((tx) => moveRun(tx, first!, { from: ['planning'], to: 'abandoned', atMs: 3 }))
      assert.notEqual(await write((tx) => addRun(tx, { ...RUN, account }, 4)), undefined)
      assert.deepEqual(
        (await journal.runs({ account })).map(({ state }) => state),
        ['planning', 'abandoned'],
      )
    })

    test('a page that is planned twice is there once', async () => {
      const run = await planned(['m1', 'm2'])
      await write((tx) => addEntries(tx, run, [candidate('m2', 9), candidate('m3', 1)]))
      assert.deepEqual(
        (await journal.entries(run, 0, 'open')).map(({ id }) => id),
        ['m1', 'm2'],
      )
    })

    test('an intent that is written again keeps the labels of before', async () => {
      const run = await planned(['m1'])
      await write((tx) => noteIntents(tx, run, [{ id: 'm1', labelIds: ['INBOX'], historyId: '5' }], 1))
      await write((tx) => noteIntents(tx, run, [{ id: 'm1', labelIds: [], historyId: '6' }], 2))
      const [entry] = await journal.entries(run, 0, 'open')
      assert.deepEqual([entry?.state, entry?.priorLabels, entry?.priorHistory], ['intent', ['INBOX'], '5'])
    })

    test('a run ends with its last entry, and counts each of them once', async () => {
      const run = await planned(['m1', 'm2', 'm3'])
      const intent = (id: string) => ({ id, labelIds: ['INBOX'], historyId: '1' })
      const refused = { id: 'm3', bytes: 10, class: 'changed' as const, detail: 'starred' }
      await write((tx) => noteIntents(tx, run, [intent('m1'), intent('m2')], 1))
      for (let twice = 0; twice < 2; twice++) {
        await write(async (tx) => {
          await noteDone(tx, run, [
            { id: 'm1', bytes: 10 },
            { id: 'm2', bytes: 10 },
          ])
          await endRunIfSettled(tx, run, 8)
        })
        assert.equal((await journal.run(run))?.state, 'acting')
      }
      for (let twice = 0; twice < 2; twice++) {
        await write(async (tx) => {
          await noteRefused(tx, run, [refused])
          await endRunIfSettled(tx, run, 9)
        })
      }
      const row = await journal.run(run)
      assert.deepEqual([row?.state, row?.endedAtMs], ['done', 9])
      assert.deepEqual([row?.done, row?.doneBytes, row?.refused], [2, 20, 1])
      assert.deepEqual(await journal.tallies(run), [
        { state: 'done', class: null, undo: null, messages: 2, bytes: 20, example: 'm1' },
        { state: 'refused', class: 'changed', undo: null, messages: 1, bytes: 10, example: 'm3' },
      ])
    })

    test('an undo covers what had an intent, done or refused since, and nothing else', async () => {
      const run = await planned(['m1', 'm2', 'm3', 'm4'])
      const intent = (id: string) => ({ id, labelIds: ['INBOX'], historyId: '1' })
      await write(async (tx) => {
        await noteIntents(tx, run, [intent('m1'), intent('m2'), intent('m3')], 1)
        await noteDone(tx, run, [{ id: 'm1', bytes: 10 }])
        await noteRefused(tx, run, [{ id: 'm2', bytes: 10, class: 'changed', detail: '' }])
        await beginUndo(tx, run)
      })
      const toUndo = async () =>
        [...(await journal.entries(run, 0, 'to-undo')), ...(await journal.entries(run, 1, 'to-undo'))].map(
          ({ id }) => id,
        )
      assert.deepEqual(await toUndo(), ['m1', 'm2', 'm3'])
      await write(async (tx) => {
        await noteInserting(tx, run, { id: 'm1', seenBefore: ['other'] })
        await noteUndone(tx, run, [{ id: 'm2', undo: 'unneeded' }], 2)
        await endUndoIfSettled(tx, run)
      })
      assert.deepEqual(await toUndo(), ['m1', 'm3'])
      assert.deepEqual((await journal.entries(run, 0, 'to-undo'))[0]?.seenBefore, ['other'])
      assert.equal((await journal.run(run))?.undo, 'undoing')
      await write(async (tx) => {
        await noteUndone(
          tx,
          run,
          [
            { id: 'm1', undo: 'reinserted', newId: `n-${run}` },
            { id: 'm3', undo: 'failed' },
          ],
          3,
        )
        await endUndoIfSettled(tx, run)
      })
      const { undo, account } = (await journal.run(run))!
      assert.equal(undo, 'undoing', 'one is not taken into the archive yet')
      assert.equal((await write((tx) => openBatches(tx, run, 'to-undo'))).length, 1)
      await write(async (tx) => {
        await noteListed(tx, account, [`n-${run}`])
        await endUndoIfSettled(tx, run)
      })
      const row = await journal.run(run)
      assert.deepEqual([row?.undo, row?.undone], ['undone', 3])
      assert.deepEqual(await journal.madeByUndo([`n-${run}`, 'other']), new Set([`n-${run}`]))
      await write((tx) => retryFailedUndo(tx, run))
      assert.deepEqual(await toUndo(), ['m3'])
      assert.equal((await journal.run(run))?.undone, 2)
    })

    test('one new message cannot stand for two that were deleted', async () => {
      const run = await planned(['m1', 'm2'])
      const claim = (id: string) =>
        write((tx) => noteUndone(tx, run, [{ id, undo: 'reinserted', newId: `same-${run}` }], 1))
      await write((tx) =>
        noteIntents(
          tx,
          run,
          ['m1', 'm2'].map((id) => ({ id, labelIds: [], historyId: '1' })),
          1,
        ),
      )
      await claim('m1')
      await assert.rejects(claim('m2'))
    })

    test('only a planned run can be approved, and only once', async () => {
      const run = (await write((tx) => addRun(tx, { ...RUN, account: 'asks', approved: false }, 1)))!
      assert.equal(await write((tx) => approveRun(tx, run)), false)
      await write((tx) => moveRun(tx, run, { from: ['planning'], to: 'planned' }))
      assert.equal(await write((tx) => approveRun(tx, run)), true)
      assert.equal(await write((tx) => approveRun(tx, run)), false)
      assert.deepEqual(
        [(await journal.run(run))?.state, (await journal.run(run))?.approved],
        ['acting', true],
      )
    })

    test('two last batches that end at the same time end the run', async () => {
      const run = await planned(['m1', 'm2', 'm3', 'm4'])
      const finish = (id: string) =>
        write(async (tx) => {
          await noteDone(tx, run, [{ id, bytes: 10 }])
          await endRunIfSettled(tx, run, 9)
        })
      await Promise.all(['m1', 'm2', 'm3', 'm4'].map(finish))
      const row = await journal.run(run)
      assert.deepEqual([row?.state, row?.done], ['done', 4])
    })

    test('all entries of a run come in pages', async () => {
      const ids = Array.from({ length: 1_050 }, (_, n) => `m${n}`)
      const run = await planned(ids)
      const found: string[] = []
      for await (const page of journal.allEntries(run)) found.push(...page.map(({ id }) => id))
      assert.deepEqual([...found].sort(), [...ids].sort())
    })
  })
}
