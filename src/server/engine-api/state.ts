/** What holds now, in lists: alerts, workers, limits, schedules, settings; and the numbers that charts draw. */

import { z } from 'zod'
import { conflict, notFound, type ProblemError } from '../../app/problem.ts'
import { route } from '../../app/route.ts'
import {
  alertSchema,
  budgetSchema,
  type SettingView,
  scheduleSchema,
  seriesSchema,
  settingSchema,
  workerSchema,
} from '../../app/schemas.ts'
import { alertView, scheduleView, workerView } from '../../app/state-views.ts'
import { TidemarkError } from '../../base/errors.ts'
import { type CatalogEntry, displayValue } from '../../config/catalog.ts'
import { originText } from '../../config/location.ts'
import { listEngines } from '../../engine/observe/engines.ts'
import type { ServerServices } from '../services.ts'
import { readBudgets } from './budgets.ts'

const DAY_S = 86_400
const MINUTES_S = 600
const SINCE_S_MAX = 1e11

const listAlerts = route('GET /api/alerts', {
  tag: 'state',
  summary: 'What is wrong now',
  answer: z.object({ items: z.array(alertSchema) }),
  handle: async (_input, { ledger }) => ({ items: (await ledger.alerts()).map(alertView) }),
})

const listWorkers = route('GET /api/workers', {
  tag: 'state',
  summary: 'The processes that run jobs',
  answer: z.object({ items: z.array(workerSchema) }),
  handle: async (_input, { ledger, engine }) => ({
    items: (await listEngines(ledger)).map((one) => workerView(one, engine.owner)),
  }),
})

const listLimits = route('GET /api/limits', {
  tag: 'state',
  summary: 'Budgets: what calls to services may cost, and how it goes',
  answer: z.object({ items: z.array(budgetSchema) }),
  handle: async (_input, services) => ({ items: await readBudgets(services) }),
})

const listSchedules = route('GET /api/schedules', {
  tag: 'state',
  summary: 'What comes again and again, and when next',
  answer: z.object({ items: z.array(scheduleSchema) }),
  handle: async (_input, { ledger }) => {
    const names = new Map((await ledger.streamNames()).map(({ id, name }) => [id, name]))
    const rows = await ledger.schedules()
    return { items: rows.map((row) => scheduleView(row, names.get(row.stream_id) ?? null)) }
  },
})

const showSeries = route('GET /api/series', {
  tag: 'state',
  summary: 'Rates, budgets and workers over the last minutes, or the last day',
  query: z.object({
    stepS: z.enum(['1', '60']).default('1').describe('Seconds from point to point'),
    sinceS: z.coerce
      .number()
      .min(0)
      .max(SINCE_S_MAX)
      .optional()
      .describe(
        'Seconds since the epoch; if left out, the last ten minutes, or the last day in steps of 60 s',
      ),
  }),
  answer: seriesSchema,
  handle: async ({ query }, services) => {
    const { series, clock } = services as ServerServices
    const stepS = query.stepS === '60' ? 60 : 1
    const nowS = Math.floor(clock.now() / 1_000)
    const sinceS = query.sinceS ?? nowS - (stepS === 60 ? DAY_S : MINUTES_S)
    return { stepS, points: [...series.points({ sinceS, stepS })] }
  },
})

const showConfig = route('GET /api/config', {
  tag: 'state',
  summary: 'Every setting that holds and where it came from; secrets are hidden',
  answer: z.object({ items: z.array(settingSchema) }),
  handle: async (_input, services) => {
    const { catalog } = services as ServerServices
    return { items: catalog.entries.map((entry) => settingView(services as ServerServices, entry)) }
  },
})

const TEXT_CHARS_MAX = 10_000

const changeConfig = route('PUT /api/config/{key}', {
  tag: 'state',
  summary: 'Changes a setting in the configuration file; it holds at once',
  description:
    'For those settings of which `change` is `here`. 400: the value is not allowed. 409: something else wins over the file, nothing is configured by a file here, or the file cannot be read or written.',
  errors: [404, 409, 422],
  params: z.object({ key: z.string().min(1).max(200).describe('Such as `files.poll_seconds`') }),
  body: z.strictObject({
    value: z
      .string()
      .max(TEXT_CHARS_MAX)
      .nullable()
      .describe('As on the command line, a list as in TOML; null: the default holds again'),
  }),
  answer: settingSchema,
  handle: async ({ params: { key }, body: { value }, user }, services) => {
    const server = services as ServerServices
    const entry = server.catalog.find(key)
    if (!entry) throw notFound(`There is no setting ${key}.`, { code: 'setting-unknown' })
    const { change, origin } = settingView(server, entry)
    if (change !== 'here' || !server.changeSetting) {
      const why =
        change === 'no' ? 'It is not one that is changed here' : `It is set by ${origin}, which wins`
      throw conflict(`${key} was not changed. ${why}.`, {
        code: 'setting-fixed',
        hint: `On the machine of the server: tidemark config set ${key}${entry.about.secret ? '' : ' VALUE'}`,
      })
    }
    try {
      await server.changeSetting(key, value ?? undefined)
    } catch (thrown) {
      throw fileProblem(thrown) ?? thrown
    }
    const changed = settingView(server, entry)
    await server.users.note(user, 'setting-changed', `${key}: ${value === null ? 'default' : changed.value}`)
    return changed
  },
})

/** The request is right; it is the file that is in no state to be changed. */
function fileProblem(thrown: unknown): ProblemError | undefined {
  if (!(thrown instanceof TidemarkError) || !FILE_CODES.includes(thrown.code ?? '')) return undefined
  const { message, hint, code } = thrown
  return conflict(message, { cause: thrown, ...(hint && { hint }), ...(code && { code }) })
}

const FILE_CODES = ['config-broken', 'config-unreadable', 'config-unwritable', 'config-busy']

function changeOf({ origins, changeSetting }: ServerServices, entry: CatalogEntry): SettingView['change'] {
  if (!entry.about.onPage || !changeSetting) return 'no'
  const kind = origins.get(entry.key)?.kind ?? 'default'
  return kind === 'env' || kind === 'flag' ? 'set-elsewhere' : 'here'
}

function settingView(services: ServerServices, entry: CatalogEntry): SettingView {
  const { config, origins } = services
  const section = config[entry.section as keyof typeof config] as Record<string, unknown>
  return {
    key: entry.key,
    value: displayValue(entry, section[entry.name]),
    origin: originText(origins.get(entry.key) ?? { kind: 'default' }),
    purpose: entry.about.purpose ?? null,
    allowed: entry.about.allowed,
    change: changeOf(services, entry),
  }
}

export const stateRoutes = [
  listAlerts,
  listWorkers,
  listLimits,
  listSchedules,
  showSeries,
  showConfig,
  changeConfig,
]
