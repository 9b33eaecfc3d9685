/**
 * Did it commit? An answer to COMMIT that is lost leaves that open; see doubt.ts. Every writing transaction leaves a
 * witness, as on PostgreSQL: each stream has a row in `commits`, and the transaction raises its number to its own, in the
 * same request as COMMIT. The question fences that row. It needs the write lock: a transaction that is still under way
 * makes it wait until that has ended, by itself or by the server's limit. A request that was held up on its way and
 * arrives only afterwards fails on the CHECK, and its COMMIT is not run.
 */
import type { Session } from '../doubt.ts'
import type { Connection, Step } from './connection.ts'

export const COMMITS_TABLE = `CREATE TABLE commits (
  writer TEXT PRIMARY KEY, n INTEGER NOT NULL, fenced INTEGER, at INTEGER NOT NULL DEFAULT (unixepoch()),
  CONSTRAINT commits_fence CHECK (fenced IS NULL OR n = fenced)) STRICT`

const WITNESS = `INSERT INTO commits(writer, n) VALUES (?, ?)
  ON CONFLICT (writer) DO UPDATE SET n = excluded.n, at = excluded.at`

const FENCE = `INSERT INTO commits(writer, n, fenced) VALUES (?, 0, 0)
  ON CONFLICT (writer) DO UPDATE SET fenced = commits.n RETURNING n`

/** Rows of streams that ended without a good-bye. Nobody asks after a day. */
export const SWEEP_COMMITS = `DELETE FROM commits WHERE at < unixepoch() - 172800`
export const FORGET_COMMITS = `DELETE FROM commits WHERE writer LIKE ?`

export function witness(session: Session): Step {
  session.n += 1
  return { sql: WITNESS, args: [session.writer, session.n], when: 'open' }
}

/** On a stream of its own: the old one may be busy. */
export async function fence(connection: Connection, { writer }: Session): Promise<number> {
  const { results, errors } = await connection
    .stream()
    .batch([{ sql: FENCE, args: [writer] }], { isFirst: true })
  if (errors[0]) throw errors[0]
  return Number(results[0]!.rows()[0]![0])
}
