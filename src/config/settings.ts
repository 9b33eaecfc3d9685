/**
 * Every setting there is: section, key, what is allowed and what holds without it. The same names
 * are used in the TOML file, in TIDEMARK_<SECTION>_<KEY> and here.
 */
import { z } from 'zod'
import { parseBytes, parseRate } from './quantity.ts'

/** What people are told about a setting. */
export type About = {
  /** The end of the sentence "it must be …". */
  allowed: string
  /** What the setting does, in a few words. */
  purpose?: string
  unit?: 'bytes' | 'rate'
  /** What of the value is hidden when it is printed. */
  secret?: 'password' | 'path' | 'all'
}

export const about = z.registry<About>()

type Range = { min: number; max: number }

const DAYS = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'] as const
const TIMETABLE_ENTRIES_MAX = 50
const ALLOWED_HOSTS_MAX = 50
const ALLOWED_ROOTS_MAX = 50

const MICROSOFT = 'https://login.microsoftonline.com/common/oauth2/v2.0'

const ALLOWED_RATE = 'a rate such as "10MB/s" or "100Mbit/s", or "unlimited"'
const ALLOWED_LEDGER = '"sqlite", "sqlite:FILE" (inside the home folder) or "postgres://USER@HOST/DATABASE"'

const rate = z.union([z.string(), z.number()]).transform((input, context) => {
  const parsed = parseRate(input)
  if (parsed !== undefined) return parsed
  context.addIssue('no rate')
  return z.NEVER
})

const bytes = z.union([z.string(), z.number()]).transform((input, context) => {
  const parsed = parseBytes(input)
  if (parsed !== undefined && parsed >= 1) return parsed
  context.addIssue('no size')
  return z.NEVER
})

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

const webUrl = z.string().refine((text) => /^https?:$/.test(protocolOf(text) ?? ''))

const ledgerUrl = z
  .string()
  .refine((text) => /^sqlite(?::.+)?$/.test(text) || /^postgres(?:ql)?:$/.test(protocolOf(text) ?? ''))

export const configSchema = z.strictObject({
  ledger: section({
    url: ledgerUrl.default('sqlite').register(about, {
      allowed: ALLOWED_LEDGER,
      purpose: 'the database that holds all work',
      secret: 'password',
    }),
    prune_after_days: whole({ min: 1, max: 3650 }, 7, 'how long settled jobs are kept'),
    failed_after_days: whole({ min: 1, max: 3650 }, 30, 'how long failed jobs are kept'),
  }),
  engine: section({
    workers: whole({ min: 1, max: 1024 }, 16, 'how many jobs run at once'),
    window: whole({ min: 16, max: 10_000 }, 10_000, 'how many claimed jobs wait in memory at most'),
    lease_seconds: whole({ min: 5, max: 3600 }, 30, 'how long a silent worker keeps its jobs'),
    bulk_bytes: bytes.prefault('10MB').register(about, {
      allowed: 'a size such as "10MB" or "512KiB"',
      purpose: 'jobs of this size and more go to the bulk lane',
      unit: 'bytes',
    }),
  }),
  log: section({
    level: choice(
      ['trace', 'debug', 'info', 'warn', 'error'],
      'info',
      'the least important line that is written',
    ),
    format: choice(['pretty', 'json'], 'pretty', 'lines for people or for programs'),
  }),
  alerts: section({
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
  }),
  bandwidth: section({
    upload: bandwidth('bytes sent'),
    download: bandwidth('bytes received'),
    combined: bandwidth('bytes in both directions together'),
    timetable: z
      .array(timetableEntry)
      .max(TIMETABLE_ENTRIES_MAX)
      .default([])
      .register(about, {
        allowed: `a list of up to ${TIMETABLE_ENTRIES_MAX} entries such as { from = "08:00", to = "18:00", upload = "1MB/s" }`,
        purpose: 'other rates by time of day',
      }),
  }),
  gmail: section({
    units_per_minute: whole(
      { min: 60, max: 1_000_000_000 },
      6_000,
      'quota units a minute for each account: 6000 for new projects, 15000 for those of before May 2026',
    ),
    price_of_get: whole({ min: 1, max: 1_000 }, 20, 'units that reading a message costs: 5 for old projects'),
    requests_per_second_start: whole({ min: 1, max: 10_000 }, 4, 'requests a second to begin with'),
    requests_per_second_max: whole({ min: 1, max: 10_000 }, 16, 'requests a second at most'),
    workers_start: whole({ min: 1, max: 256 }, 8, 'batches at work for an account to begin with'),
    workers_max: whole({ min: 1, max: 256 }, 32, 'batches at work for an account at most'),
    client_id: text('the OAuth client id of your Google Cloud project'),
    client_secret: secretText('its client secret'),
    api_url: url('https://gmail.googleapis.com', 'where the Gmail API is'),
    auth_url: url('https://accounts.google.com/o/oauth2/v2/auth', 'where accounts are connected'),
    token_url: url('https://oauth2.googleapis.com/token', 'where tokens come from'),
    revoke_url: url('https://oauth2.googleapis.com/revoke', 'where tokens are given back'),
  }),
  mail: section({
    slice: choice(['auto', 'day', 'week', 'month'], 'auto', 'how long a slice of the mailbox is'),
    slice_by_label: text('a label that dominates the mailbox: it is listed apart from the rest'),
    batch: whole({ min: 1, max: 500 }, 300, 'messages in a batch to begin with'),
    shard_by: choice(['month', 'quarter', 'year'], 'year', 'the time that one file of the archive covers'),
    shard_max: bytes.prefault('4GB').register(about, {
      allowed: 'a size such as "4GB"',
      purpose: 'a file of the archive that is larger gets a successor',
      unit: 'bytes',
    }),
    poll_minutes: whole({ min: 1, max: 1440 }, 5, 'how often new mail is looked for'),
    patience_minutes: whole(
      { min: 0, max: 1440 },
      10,
      'how long a sync waits for Gmail when it is out of reach; with --watch it does so without end',
    ),
    metadata_max: bytes.prefault('1GB').register(about, {
      allowed: 'a size such as "1GB"',
      purpose: 'room for what the ledger keeps about an account; alerts warn at half of it',
      unit: 'bytes',
    }),
  }),
  onedrive: section({
    requests_per_second_start: whole({ min: 1, max: 10_000 }, 20, 'requests a second to begin with'),
    requests_per_second_max: whole({ min: 1, max: 10_000 }, 200, 'requests a second at most'),
    client_id: text('the client id of your app registration at Microsoft'),
    api_url: url('https://graph.microsoft.com/v1.0', 'where Microsoft Graph is'),
    auth_url: url(`${MICROSOFT}/authorize`, 'where accounts are connected'),
    token_url: url(`${MICROSOFT}/token`, 'where tokens come from'),
    device_url: url(`${MICROSOFT}/devicecode`, 'where codes for a sign-in on another device come from'),
  }),
  files: section({
    parallel_downloads: whole({ min: 1, max: 64 }, 8, 'files downloaded at once'),
    parallel_uploads: whole({ min: 1, max: 64 }, 8, 'files uploaded at once'),
    parallel_checkers: whole({ min: 1, max: 64 }, 8, 'files hashed at once'),
    chunk_size: bytes.prefault('10MiB').register(about, {
      allowed: 'a size such as "10MiB", up to 60MiB; it is rounded down to a multiple of 320 KiB',
      purpose: 'how much of a large file is sent at a time',
      unit: 'bytes',
    }),
    disk_reserve: bytes.prefault('1GB').register(about, {
      allowed: 'a size such as "1GB"',
      purpose: 'room on the disk that downloads leave free',
      unit: 'bytes',
    }),
    trash_days: whole({ min: 1, max: 3650 }, 30, 'how long files deleted or replaced here are kept'),
    poll_seconds: whole({ min: 5, max: 86_400 }, 60, 'how often changes in OneDrive are asked for'),
    scan_minutes: whole({ min: 1, max: 10_080 }, 60, 'how often the whole folder is looked through'),
    debounce_ms: whole({ min: 0, max: 60_000 }, 2_000, 'quiet after a change before it is looked at'),
    patience_minutes: whole(
      { min: 0, max: 1440 },
      10,
      'how long a sync waits for OneDrive when it is out of reach; with --watch it does so without end',
    ),
    allowed_roots: z
      .array(z.string().min(1).max(4_096))
      .max(ALLOWED_ROOTS_MAX)
      .default([])
      .register(about, {
        allowed: `a list of up to ${ALLOWED_ROOTS_MAX} paths such as "/home/ann"`,
        purpose:
          'where the dashboard may add folders; without it in your home, and nowhere if others reach the server',
      }),
  }),
  server: section({
    host: z
      .string()
      .regex(/^[\w.:-]{1,253}$/)
      .default('127.0.0.1')
      .register(about, {
        allowed: 'an address of this machine such as "127.0.0.1" or "0.0.0.0"',
        purpose: 'where the server listens; beyond this machine it takes a token',
      }),
    port: whole({ min: 0, max: 65_535 }, 4180, 'the port of the server; 0 takes any that is free'),
    token: z
      .string()
      .regex(/^[\x21-\x7e]{16,4096}$/)
      .optional()
      .register(about, {
        allowed: 'at least 16 characters without blanks',
        purpose: 'what a page or a program signs in with',
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
  }),
})

export type Config = z.output<typeof configSchema>
export type TimetableEntry = Config['bandwidth']['timetable'][number]

function section<Shape extends z.ZodRawShape>(shape: Shape) {
  return z.strictObject(shape).prefault({} as never)
}

function whole({ min, max }: Range, fallback: number, purpose: string) {
  const allowed = `a whole number from ${min} to ${max}`
  return z.int().min(min).max(max).default(fallback).register(about, { allowed, purpose })
}

function share(fallback: number, purpose: string) {
  const allowed = 'a share from 0 to 1, such as 0.01'
  return z.number().min(0).max(1).default(fallback).register(about, { allowed, purpose })
}

function choice<const Values extends readonly [string, ...string[]]>(
  values: Values,
  fallback: Values[number],
  purpose: string,
) {
  const allowed = `one of ${values.map((value) => `"${value}"`).join(', ')}`
  return z
    .enum(values)
    .default(fallback as never)
    .register(about, { allowed, purpose })
}

function text(purpose: string) {
  return z.string().min(1).optional().register(about, { allowed: 'a text', purpose })
}

function secretText(purpose: string) {
  return z.string().min(1).optional().register(about, { allowed: 'a text', purpose, secret: 'all' })
}

function url(fallback: string, purpose: string) {
  return webUrl.default(fallback).register(about, { allowed: 'an http:// or https:// address', purpose })
}

function bandwidth(purpose: string) {
  return rate.prefault('unlimited').register(about, { allowed: ALLOWED_RATE, purpose, unit: 'rate' })
}

function protocolOf(text: string): string | undefined {
  return URL.canParse(text) ? new URL(text).protocol : undefined
}
