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
import { hasCommitted as askUntilKnown, type Session } from '../doubt.ts'
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

/** Sent together with COMMIT, so it costs no round trip. */
export function leaveWitness(client: pg.ClientBase, session: Session): Promise<unknown> {
  session.n += 1
  return client.query({ name: 'witness', text: WITNESS, values: [session.writer, session.n] })
}

/** Asks over a new connection until it knows. After `false` that transaction can never commit any more. */
export function hasCommitted(target: Target, session: Session, signal: AbortSignal): Promise<boolean> {
  return askUntilKnown(session, { where: target.where, ask: () => ask(target, session.writer), signal })
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
