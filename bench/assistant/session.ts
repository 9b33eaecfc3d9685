/** How much the cases of the assistant's bench measure, and how long each may take: all of it is over in some ten minutes. */
import type { BenchOptions } from '../bench.ts'
import { Session as BenchSession } from '../session.ts'

export const DATABASES = ['sqlite', 'postgres'] as const
export type Database = (typeof DATABASES)[number]

export type Sizes = {
  /** Mails that come one after the other. */
  mails: number
  /** Mails that lie there, and what may be spent on them. */
  backlog: Readonly<Record<Database, number>>
  unitsPerMinute: Readonly<Record<Database, number>>
  backlogMs: Readonly<Record<Database, number>>
  users: number
  /** Mails that come to each of them at once. */
  mailsEach: number
  usersMs: number
}

/**
 * Each mail takes some 135 units: of a new project's 6,000 a minute, 10,000 mails would take nearly four hours. Allowed is
 * as much as leaves both processors time to wait, with both databases at it at once.
 */
export const FULL: Sizes = {
  mails: 100,
  backlog: { sqlite: 10_000, postgres: 3_000 },
  unitsPerMinute: { sqlite: 200_000, postgres: 80_000 },
  backlogMs: { sqlite: 480_000, postgres: 420_000 },
  users: 100,
  mailsEach: 5,
  usersMs: 60_000,
}

export const QUICK: Sizes = {
  mails: 20,
  backlog: { sqlite: 200, postgres: 100 },
  unitsPerMinute: { sqlite: 60_000, postgres: 60_000 },
  backlogMs: { sqlite: 60_000, postgres: 60_000 },
  users: 20,
  mailsEach: 1,
  usersMs: 40_000,
}

export class Session extends BenchSession<Sizes> {
  constructor(options: BenchOptions) {
    super(options, { name: 'assistant', full: FULL, quick: QUICK })
  }
}
