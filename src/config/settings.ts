/** The settings of the engine and the machine. Those of services and apps are in their own folders. */
import { z } from 'zod'
import {
  about,
  bytes,
  choice,
  defineSection,
  protocolOf,
  rate,
  type SectionValues,
  secretText,
  share,
  text,
  webUrl,
  whole,
} from './section.ts'

const DAYS = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'] as const
const TIMETABLE_ENTRIES_MAX = 50
const ALLOWED_HOSTS_MAX = 50

const ALLOWED_RATE = 'a rate such as "10MB/s" or "100Mbit/s", or "unlimited"'
const ALLOWED_LEDGER =
  '"sqlite", "sqlite:FILE" (inside the home folder), "postgres://USER@HOST/DATABASE", or "libsql://HOST" or "http://HOST:PORT" of a libSQL server'

const timeOfDay = z
  .string()
  .regex(/^(?:[01]\d|2[0-3]):[0-5]\d$|^24:00$/)
  .register(about, { allowed: 'a time of day such as "08:00"' })

const optionalRate = rate.optional().register(about, { allowed: ALLOWED_RATE, unit: 'rate' })

const timetableEntry = z
  .strictObject({
    from: timeOfDay,
    to: timeOfDay,
    days: z
      .array(z.enum(DAYS))
      .min(1)
      .optional()
      .register(about, { allowed: `a list of days out of ${DAYS.join(', ')}` }),
    upload: optionalRate,
    download: optionalRate,
    combined: optionalRate,
  })
  .refine(({ from, to }) => from !== to)
  .register(about, { allowed: 'an entry with from, a different to and the rates that hold in between' })

const ledgerUrl = z
  .string()
  .refine(
    (text) =>
      /^sqlite(?::.+)?$/.test(text) || /^(?:postgres(?:ql)?|libsql|https?):$/.test(protocolOf(text) ?? ''),
  )

const ledger = defineSection('ledger', {
  url: ledgerUrl.default('sqlite').register(about, {
    allowed: ALLOWED_LEDGER,
    purpose: 'the database that holds all work',
    secret: 'password',
  }),
  token: secretText('what a libSQL server is asked with'),
  prune_after_days: whole({ min: 1, max: 3650 }, 7, 'how long settled jobs are kept'),
  failed_after_days: whole({ min: 1, max: 3650 }, 30, 'how long failed jobs are kept'),
  audit_after_days: whole({ min: 1, max: 3650 }, 365, 'how long it is kept what was done for users, by whom'),
})

const engine = defineSection('engine', {
  workers: whole({ min: 1, max: 1024 }, 16, 'how many jobs run at once'),
  window: whole({ min: 16, max: 10_000 }, 10_000, 'how many claimed jobs wait in memory at most'),
  lease_seconds: whole({ min: 5, max: 3600 }, 30, 'how long a silent worker keeps its jobs'),
  bulk_bytes: bytes.prefault('10MB').register(about, {
    allowed: 'a size such as "10MB" or "512KiB"',
    purpose: 'jobs of this size and more go to the bulk lane',
    unit: 'bytes',
  }),
})

const log = defineSection('log', {
  level: choice(
    ['trace', 'debug', 'info', 'warn', 'error'],
    'info',
    'the least important line that is written',
  ),
  format: choice(['pretty', 'json'], 'pretty', 'lines for people or for programs'),
})

const alerts = defineSection('alerts', {
  webhook_url: webUrl.optional().register(about, {
    allowed: 'an http:// or https:// address',
    purpose: 'where alerts are posted to',
    secret: 'path',
  }),
  bad_warn: share(0.002, 'the share of bad items that warns'),
  bad_critical: share(0.01, 'the share of bad items that is critical'),
  bad_per_hour_critical: whole({ min: 1, max: 1_000_000 }, 200, 'more bad items in an hour are critical'),
  throttled_minutes: whole({ min: 1, max: 1440 }, 10, 'throttling for this long warns'),
  heartbeat_minutes: whole({ min: 1, max: 1440 }, 10, 'an engine silent for this long warns'),
  stale_minutes: whole(
    { min: 5, max: 10_080 },
    30,
    'a mailbox, folder or drive of which nothing is heard for this long, and for five of its rounds, warns',
  ),
  desktop: choice(['auto', 'off'], 'auto', 'alerts as notifications where a desktop is, or never'),
})

const bandwidth = defineSection('bandwidth', {
  upload: rateOf('bytes sent'),
  download: rateOf('bytes received'),
  combined: rateOf('bytes in both directions together'),
  timetable: z
    .array(timetableEntry)
    .max(TIMETABLE_ENTRIES_MAX)
    .default([])
    .register(about, {
      allowed: `a list of up to ${TIMETABLE_ENTRIES_MAX} entries such as { from = "08:00", to = "18:00", upload = "1MB/s" }`,
      purpose: 'other rates by time of day',
      onPage: true,
    }),
})

const server = defineSection('server', {
  host: z
    .string()
    .regex(/^[\w.:-]{1,253}$/)
    .default('127.0.0.1')
    .register(about, {
      allowed: 'an address of this machine such as "127.0.0.1" or "0.0.0.0"',
      purpose: 'where the server listens',
    }),
  port: whole({ min: 0, max: 65_535 }, 4180, 'the port of the server; 0 takes any that is free'),
  token: z
    .string()
    .regex(/^[\x21-\x7e]{16,4096}$/)
    .optional()
    .register(about, {
      allowed: 'at least 16 characters without blanks',
      purpose: 'what a page or a program signs in with; without it, that of server.token in the home folder',
      secret: 'all',
    }),
  allowed_hosts: z
    .array(z.string().regex(/^[\w.-]{1,253}$/))
    .max(ALLOWED_HOSTS_MAX)
    .default([])
    .register(about, {
      allowed: `a list of up to ${ALLOWED_HOSTS_MAX} names such as "mail.example.com"`,
      purpose: 'further names under which the server is reached',
    }),
  mcp_write: z.boolean().default(false).register(about, {
    allowed: 'true or false',
    purpose: 'whether programs that ask over MCP may start a sync and try bad items again',
  }),
})

/** Of the index, which every app fills; the app of search has it as its own. */
export const searchSection = defineSection('search', {
  embedding: choice(
    ['builtin', 'openai', 'ollama', 'off'],
    'builtin',
    'what finds by meaning: the model that comes along, a service, or nothing',
  ),
  url: webUrl.optional().register(about, {
    allowed: 'an http:// or https:// address',
    purpose: 'where the service is, up to and without /embeddings or /api/embed',
  }),
  model: text('which model of the service'),
  key: secretText('what the service is asked with'),
  dims: whole({ min: 8, max: 8_192 }, 1_536, 'how many numbers a vector of the service has'),
  batch: whole({ min: 1, max: 2_048 }, 64, 'how many texts are sent to the service at once'),
  threads: whole({ min: 1, max: 64 }, 1, 'how many threads the model that comes along calculates with'),
  price: money('what a million tokens cost at the service, in any currency'),
  budget: money('how much a day may cost, in the same currency; 0 where nothing limits it'),
})

export const coreSections = [ledger, engine, log, alerts, bandwidth, server, searchSection]

/** Every section; those of services and apps add themselves where they are defined. */
export interface Config {
  ledger: SectionValues<typeof ledger>
  engine: SectionValues<typeof engine>
  log: SectionValues<typeof log>
  alerts: SectionValues<typeof alerts>
  bandwidth: SectionValues<typeof bandwidth>
  server: SectionValues<typeof server>
  search: SectionValues<typeof searchSection>
}

function money(purpose: string) {
  const allowed = 'a number from 0 up, such as 0.02'
  return z.number().min(0).max(1e9).default(0).register(about, { allowed, purpose })
}

function rateOf(purpose: string) {
  return rate
    .prefault('unlimited')
    .register(about, { allowed: ALLOWED_RATE, purpose, unit: 'rate', onPage: true })
}
