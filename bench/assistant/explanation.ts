/** What the rows mean: the conditions they hold under, and each aim beside what was reached. */
import type { Row } from '../bench.ts'
import { type Aim, aimLines, verdict } from '../session.ts'
import { formatValue } from '../table.ts'
import { BACKLOG, LATENCY, USERS, WORKERS } from './cases.ts'
import { DATABASES, type Sizes } from './session.ts'

const QUOTA_SHARE_MIN = 0.8

export function conditions(sizes: Sizes): string[] {
  const { mails, backlog, unitsPerMinute, users, mailsEach } = sizes
  const number = (n: number): string => n.toLocaleString('en-US')
  return [
    'the simulated Gmail and the simulated model, which answers at once, run in the process of the assistant: what they take is part of all times; PostgreSQL is a server of the run on this machine',
    `${LATENCY}: ${mails} mails one after the other, each asking something; from the moment at which Gmail sends the push over HTTP, signed, to its call that sets the label, and to the one that makes the draft`,
    `${BACKLOG}: ${number(backlog.sqlite)} (SQLite) and ${number(backlog.postgres)} (PostgreSQL) mails in the inbox, both at the same time; the quota is accelerated: ${number(unitsPerMinute.sqlite)} and ${number(unitsPerMinute.postgres)} units a minute are allowed, where Gmail allows 6,000; until each has its label and its draft; units are counted by the calls that Gmail got`,
    `${USERS}: ${users} mailboxes, ${mailsEach} mails each at once, without a limit by quota; until each has its label and its draft; with ${WORKERS} processes, one of them has the simulated services, too`,
  ]
}

const AIMS: readonly Aim[] = [
  { of: /^latency: \w+, to label, p50$/, isMet: (value) => value < 500, text: 'below 500' },
  { of: /^latency: \w+, to draft, p50$/, isMet: (value) => value < 1_000, text: 'below 1,000' },
]

export function aims(rows: readonly Row[]): string[] {
  return [...aimLines(rows, AIMS), ...quotaLines(rows)]
}

function quotaLines(rows: readonly Row[]): string[] {
  return DATABASES.flatMap((database) => {
    const name = `${BACKLOG}: ${database}, units`
    const of = (subject: string) => rows.find((row) => row.case === name && row.subject === subject)?.value
    const [own, limit] = [of('tidemark'), of('limit quota')]
    if (own === undefined || limit === undefined) return []
    const share = own / limit
    return [
      `${BACKLOG}: ${database}: ${formatValue(share)} × the quota's rate (at least ${QUOTA_SHARE_MIN}: ${verdict(share >= QUOTA_SHARE_MIN)})`,
    ]
  })
}
