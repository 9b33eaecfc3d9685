/** The API and the pages on a ledger of a million jobs: how long each read takes, and how the pages feel. */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { performance } from 'node:perf_hooks'
import { sleep, systemClock } from '../../src/base/clock.ts'
import { openLedger } from '../../src/ledger/open.ts'
import type { Row } from '../bench.ts'
import { cpuSeconds, percentile } from '../session.ts'
import { formatValue } from '../table.ts'
import { fillLargeLedger, LARGE_STREAM } from './large-ledger.ts'
import { feelPages } from './large-pages.ts'
import { BENCH_HEADERS, type Served, type Session } from './session.ts'

export const LARGE = 'large'
const IDLE_MS = 5_000

const stream = encodeURIComponent(LARGE_STREAM)
/** What pages ask for. */
const READS: Record<string, string> = {
  overview: '/api/overview',
  streams: '/api/streams',
  'frontier of 160 cells': `/api/streams/${stream}/frontier?cells=160`,
  'frontier of 400 cells': `/api/streams/${stream}/frontier?cells=400`,
  segments: `/api/streams/${stream}/segments?limit=100`,
  'segments that are open': `/api/streams/${stream}/segments?limit=100&state=open`,
  'segments that are settled': `/api/streams/${stream}/segments?limit=100&state=settled`,
  jobs: '/api/jobs?limit=100',
  'jobs, far down': '/api/jobs?limit=100&cursor=400000',
  'jobs that wait': '/api/jobs?limit=100&state=pending',
  'jobs at work': '/api/jobs?limit=100&state=claimed',
  'jobs that are done': '/api/jobs?limit=100&state=done',
  'jobs that failed': '/api/jobs?limit=100&state=failed',
  'jobs that were canceled': '/api/jobs?limit=100&state=canceled',
  'jobs of a kind': '/api/jobs?limit=100&kind=large.fetch',
  'jobs of a kind that failed': '/api/jobs?limit=100&kind=large.fetch&state=failed',
  'jobs of a stream': `/api/jobs?limit=100&stream=${stream}`,
  'jobs of a segment': '/api/jobs?limit=100&segment=7',
  'jobs older than an hour': '/api/jobs?limit=100&olderThanMs=3600000',
  'jobs older than 23 h': '/api/jobs?limit=100&olderThanMs=82800000',
  'a job': '/api/jobs/997',
  'bad items': `/api/bad?limit=100&stream=${stream}`,
  series: '/api/series',
  accounts: '/api/accounts',
  limits: '/api/limits',
  workers: '/api/workers',
  schedules: '/api/schedules',
}

export async function runLarge(session: Session): Promise<Row[]> {
  const { folder, sizes } = session
  const home = join(folder, 'large')
  mkdirSync(home)
  const ledger = await openLedger(`sqlite:${join(home, 'ledger.db')}`)
  await fillLargeLedger(ledger, sizes)
  await ledger.close()
  const served = await session.serve({ ...process.env, TIDEMARK_HOME: home }, ['--role', 'web'])
  try {
    const rows = await readAll(session, served.url)
    rows.push(...(await costOfWatching(served)))
    rows.push(...(await feelPages(served.url)))
    return rows
  } finally {
    await served.running.stop()
  }
}

async function readAll(session: Session, url: string): Promise<Row[]> {
  const rows: Row[] = []
  for (const [name, path] of Object.entries(READS)) {
    const times: number[] = []
    for (let round = 0; round < session.sizes.readRounds; round++) {
      const fromMs = performance.now()
      const response = await fetch(url + path, { headers: BENCH_HEADERS })
      await response.arrayBuffer()
      if (!response.ok) throw new Error(`${path} was answered with ${response.status}`)
      times.push(performance.now() - fromMs)
    }
    times.sort((a, b) => a - b)
    const row = (what: string, share: number): Row => ({
      ...{
        case: `${LARGE}: ${name}, ${what}`,
        subject: 'tidemark',
        value: percentile(times, share),
        unit: 'ms',
      },
    })
    rows.push(row('p50', 0.5), row('p99', 0.99))
    session.say(`${LARGE}: ${name}: ${formatValue(percentile(times, 0.5))} ms`)
  }
  return rows
}

/** Processor time of the server while nobody is there, and while one page listens. */
async function costOfWatching({ url, pid }: Served): Promise<Row[]> {
  const share = async (): Promise<number> => {
    const before = cpuSeconds(pid)
    await sleep(systemClock, IDLE_MS)
    return ((cpuSeconds(pid) - before) * 100_000) / IDLE_MS
  }
  const alone = await share()
  const leaving = new AbortController()
  const response = await fetch(`${url}/api/events`, { headers: BENCH_HEADERS, signal: leaving.signal })
  const watched = await share()
  leaving.abort()
  await response.body?.cancel().catch(() => {})
  const row = (what: string, value: number): Row => ({
    case: `${LARGE}: processor ${what}`,
    subject: 'tidemark',
    value,
    unit: '%',
  })
  return [row('while nobody watches', alone), row('while a page listens', watched)]
}
