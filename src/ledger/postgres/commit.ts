/**
 * Did it commit? A connection that breaks during COMMIT leaves that open, and neither guess is harmless:
 * writing again what is there doubles it, believing in what is not there loses it.
 *
 * So every writing transaction leaves a witness: each connection has a row in `commits`, and the transaction
 * raises its number to its own. Whether it wrote the server knows best: it has given the transaction an id by then, for
 * a row that was locked, too, and whatever the statement looked like that did it. Who must know asks that row over a new connection, and fences it in the
 * same statement: from then on a COMMIT of the old connection that is still on its way fails on the
 * CHECK. If the old transaction is just committing, its row lock makes the question wait for the outcome.
 *
 * pg_xact_status() would not do: after a crash the server hands out the same transaction ids again, and then
 * calls a lost transaction `committed` once another one with its id is (seen with PostgreSQL 18).
 */
import type pg from 'pg'
import { sleep, systemClock } from '../../base/clock.ts'
import { TidemarkError } from '../../base/errors.ts'
import { connect, hangUp, type Target } from './connection.ts'

export const COMMITS_TABLE = `CREATE TABLE commits (
  writer TEXT COLLATE "C" PRIMARY KEY, n BIGINT NOT NULL, fenced BIGINT, at TIMESTAMPTZ NOT NULL DEFAULT now(),
  CONSTRAINT commits_fence CHECK (fenced IS NULL OR n = fenced)) WITH (fillfactor = 50)`

const WITNESS = `INSERT INTO commits(writer, n) SELECT $1::text, $2::bigint WHERE pg_current_xact_id_if_assigned() IS NOT NULL
  ON CONFLICT (writer) DO UPDATE SET n = excluded.n, at = excluded.at`

const FENCE = `INSERT INTO commits(writer, n, fenced) VALUES ($1, 0, 0)
  ON CONFLICT (writer) DO UPDATE SET fenced = commits.n RETURNING n`

/** Rows of connections that ended without a good-bye. Nobody asks after a day. */
export const SWEEP_COMMITS = `DELETE FROM commits WHERE at < now() - interval '2 days'`
export const FORGET_COMMITS = `DELETE FROM commits WHERE writer LIKE $1`

/** While the database is away nothing else could be done either; asking ends when the ledger is closed. */
const ASK_MS_MAX = 24 * 3_600_000
const ASK_PAUSE_MS = [50, 100, 250, 500, 1_000, 2_000, 5_000]

export type Session = { writer: string; n: number }

/** Sent together with COMMIT, so it costs no round trip. */
export function leaveWitness(client: pg.ClientBase, session: Session): Promise<unknown> {
  session.n += 1
  return client.query({ name: 'witness', text: WITNESS, values: [session.writer, session.n] })
}

/** Asks until it knows. After `false` that transaction can never commit any more. */
export async function hasCommitted(
  target: Target,
  { writer, n }: Session,
  signal: AbortSignal,
): Promise<boolean> {
  const sinceMs = systemClock.monotonicMs()
  let lastError: unknown
  for (let tries = 0; systemClock.monotonicMs() - sinceMs < ASK_MS_MAX; tries++) {
    try {
      return (await ask(target, writer)) >= n
    } catch (thrown) {
      lastError = thrown
    }
    try {
      await sleep(systemClock, ASK_PAUSE_MS[Math.min(tries, ASK_PAUSE_MS.length - 1)]!, signal)
    } catch {
      break // the ledger was closed
    }
  }
  // Not transient: whoever tried again without knowing might do everything twice.
  throw new TidemarkError(
    `The connection to ${target.where} broke during a commit, and whether it happened is not known.`,
    {
      kind: 'bug',
      code: 'ledger-in-doubt',
      hint: 'Start again when the database is back: the ledger itself is consistent either way.',
      cause: lastError,
    },
  )
}

async function ask(target: Target, writer: string): Promise<number> {
  const client = await connect(target, 'plain')
  try {
    const { rows } = await client.query<{ n: number }>(FENCE, [writer])
    return rows[0]!.n
  } finally {
    await hangUp(client)
  }
}
