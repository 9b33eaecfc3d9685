/** How much the cases of the assistant's bench measure. */
import type { BenchOptions } from '../bench.ts'
import { Session as BenchSession } from '../session.ts'

export type Sizes = {
  /** Mails that come one after the other. */
  mails: number
  /** Mails that lie there, and what may be spent on them. */
  backlog: number
  unitsPerMinute: number
  users: number
  /** Mails that come to each of them at once. */
  mailsEach: number
}

export const FULL: Sizes = {
  mails: 200,
  backlog: 1_000,
  unitsPerMinute: 60_000,
  users: 100,
  mailsEach: 5,
}

export const QUICK: Sizes = {
  mails: 20,
  backlog: 100,
  unitsPerMinute: 60_000,
  users: 20,
  mailsEach: 1,
}

export class Session extends BenchSession<Sizes> {
  constructor(options: BenchOptions) {
    super(options, { name: 'assistant', full: FULL, quick: QUICK })
  }
}

export const DATABASES = ['sqlite', 'postgres'] as const
export type Database = (typeof DATABASES)[number]
