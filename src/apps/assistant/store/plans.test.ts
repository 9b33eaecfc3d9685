/** What is asked for every mail must be found by an index: a mailbox has tens of thousands of them. */
import assert from 'node:assert/strict'
import { DatabaseSync, type StatementSync } from 'node:sqlite'
import { test } from 'node:test'
import { orderRework } from '../actions.ts'
import { ANN, type AssistWorld, edit, startAssistWorld } from '../assist-world.suite.ts'

/** All rows of a table, or all of a mailbox. */
const READS_ALL =
  /AUTOMATIC|^SCAN assist_(?!accounts)|^SEARCH assist_(?!accounts|rules|examples).*\(account=\?\)$/

/** Asked once by a scan, about all of a mailbox; of what is held there is an index of its own. */
const OF_SCANS: readonly RegExp[] = [
  / AND state = 'held'$/,
  /^SELECT \* FROM assist_drafts WHERE account = \? AND state IN \('intended', 'live', 'edited'\)/,
]

test('no job reads all that is known of a mailbox to find what it knows of a conversation', async () => {
  const asked = new Map<string, DatabaseSync>()
  const prepare = DatabaseSync.prototype.prepare
  let w: AssistWorld | undefined
  try {
    DatabaseSync.prototype.prepare = function (
      this: DatabaseSync,
      sql: string,
      ...rest: never[]
    ): StatementSync {
      if (/\bassist_(?:messages|threads|drafts|events|sends)\b/.test(sql)) asked.set(sql, this)
      return prepare.call(this, sql, ...rest)
    }
    w = await startAssistWorld()
    await w.onboard()
    await w.settled()
    const { threadId } = w.arrive({ text: 'Are you free on Friday?' })
    w.arrive({ text: 'Your parcel has shipped.' })
    await w.sync()
    await orderRework(w.place, { account: ANN, thread: threadId }, 'Shorter')
    await w.settled()
    edit(w, w.drafts(threadId)[0]!, 'My own words')
    await w.sync()
    w.mailbox().sendDraft(w.drafts(threadId)[0]!.id)
    await w.sync()
    w.arrive({ threadId, text: 'Or on Saturday?' })
    await w.sync()
    w.mailbox().modifyThread(threadId, { add: [await w.labelId('done')] })
    await w.sync()
    const all = [...asked].flatMap(([sql, db]) => readsAll(prepare, db, sql))
    assert.ok(asked.size > 20, String(asked.size))
    assert.deepEqual(all, [])
  } finally {
    DatabaseSync.prototype.prepare = prepare
    await w?.close()
  }
})

function readsAll(prepare: DatabaseSync['prepare'], db: DatabaseSync, sql: string): string[] {
  const text = sql.replace(/\s+/g, ' ').trim()
  if (!/^(?:SELECT|WITH|UPDATE|DELETE|INSERT)/.test(text) || OF_SCANS.some((known) => known.test(text)))
    return []
  const steps = prepare.call(db, `EXPLAIN QUERY PLAN ${sql}`).all() as { detail: string }[]
  return steps
    .filter(({ detail }) => READS_ALL.test(detail))
    .map(({ detail }) => `${detail} in: ${text.slice(0, 160)}`)
}
