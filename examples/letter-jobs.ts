/**
 * Keeping copies of letters, as four kinds of jobs:
 *
 *   letters.list ──▶ letters.fetch, one for eight letters ──▶ letters.close, after all of them
 *   letters.open: someone reads a letter meanwhile and does not want to wait
 *
 * A mailbox is a stream, a month of it is a segment, and the mailbox's mark is the last month up to which
 * every letter is accounted for.
 */
import { defineJob, type Engine, type Outcome, request } from 'tidemark/engine'
import { z } from 'zod'
import { type Found, type Letter, MAILBOXES, MONTHS, type PostOffice } from './post-office.ts'

const BATCH = 8

const Month = z.object({ mailbox: z.string(), month: z.string() })
const Letters = Month.extend({ ids: z.array(z.string()) })
const Opened = z.object({ id: z.string() })

/** A letter that is stored twice breaks the primary key: nothing here forgives a second application. */
export const TABLES: readonly (readonly string[])[] = [
  [
    `CREATE TABLE letters (id TEXT PRIMARY KEY, mailbox TEXT NOT NULL, month TEXT NOT NULL, subject TEXT NOT NULL)`,
    `CREATE TABLE closed_months (mailbox TEXT NOT NULL, month TEXT NOT NULL, letters INTEGER NOT NULL,
      PRIMARY KEY (mailbox, month))`,
  ],
]

export function letterJobs(office: PostOffice, onOpened: (waitedMs: number) => void) {
  const fetch = defineJob({
    kind: 'letters.fetch',
    payload: Letters,
    lane: 'bulk',
    // With this the engine can split a batch in two, and name the letter that is to blame.
    items: { of: ({ ids }) => ids, only: (payload, ids) => ({ ...payload, ids: [...ids] }) },
    run: async ({ payload, signal }) => keep(payload, await office.fetch(payload.ids, signal)),
  })

  const close = defineJob({
    kind: 'letters.close',
    payload: Month,
    lane: 'bulk',
    run: ({ payload: { mailbox, month } }) => ({
      effects: async (tx) => {
        await tx.run(
          `INSERT INTO closed_months(mailbox, month, letters)
           SELECT ?, ?, count(*) FROM letters WHERE mailbox = ? AND month = ?`,
          [mailbox, month, mailbox, month],
        )
      },
    }),
  })

  const list = defineJob({
    kind: 'letters.list',
    payload: Month,
    lane: 'bulk',
    run: async ({ payload, segment, signal }) => {
      const ids = await office.list(payload.mailbox, payload.month, signal)
      const options = { segment: segment! }
      return {
        listed: ids.length,
        seal: true,
        jobs: batches(ids).map((batch) => request(fetch, { ...payload, ids: batch }, options)),
        followUp: request(close, payload, options),
      }
    },
  })

  const open = defineJob({
    kind: 'letters.open',
    payload: Opened,
    lane: 'interactive',
    run: async ({ payload, job, clock, signal }) => {
      onOpened(clock.now() - job.createdAt)
      await office.open(payload.id, signal)
    },
  })

  return { list, fetch, close, open }
}

/** Segments and the jobs that list them, in one transaction. A mailbox that has them already is left alone. */
export async function planMailboxes(
  engine: Engine,
  { list }: ReturnType<typeof letterJobs>,
): Promise<boolean> {
  let planned = false
  for (const mailbox of Object.keys(MAILBOXES)) {
    const stream = await engine.streams.open(mailbox)
    if (stream.tail_at > 0) continue
    planned = true
    await engine.write({
      segments: MONTHS.map((month, at) => {
        return { streamId: stream.id, from: at, to: at + 1, mark: month, label: month, ref: month }
      }),
      jobs: MONTHS.map((month) => request(list, { mailbox, month }, { stream: mailbox, segment: month })),
    })
  }
  return planned
}

/** What was fetched goes into the table in the transaction that settles the job. */
function keep({ mailbox, month }: z.infer<typeof Letters>, found: Map<string, Found>): Outcome {
  const all = [...found.values()]
  const letters = all.filter((one): one is Letter => typeof one !== 'string')
  return {
    gone: all.filter((one) => one === 'gone').length,
    skipped: all.filter((one) => one === 'draft').length,
    stored: letters.length,
    effects: async (tx) => {
      for (const { id, subject } of letters) {
        await tx.run(`INSERT INTO letters(id, mailbox, month, subject) VALUES (?, ?, ?, ?)`, [
          id,
          mailbox,
          month,
          subject,
        ])
      }
    },
  }
}

function batches(ids: readonly string[]): string[][] {
  return Array.from({ length: Math.ceil(ids.length / BATCH) }, (_, n) =>
    ids.slice(n * BATCH, (n + 1) * BATCH),
  )
}
