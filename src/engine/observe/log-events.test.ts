import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { FakeClock } from '../../base/clock.ts'
import { type EngineEvent, EventStream } from './events.ts'
import { createLogger, type LogLevel } from './log.ts'
import { FLOOD_LINES_MAX, logEvents } from './log-events.ts'

async function listen(level: LogLevel = 'debug') {
  const clock = new FakeClock()
  const events = new EventStream(clock)
  const lines: string[] = []
  const stream = { write: (text: string) => void lines.push(text.trimEnd().replace(/^\S+ /, '')) }
  const stop = logEvents(events, await createLogger({ clock, stream, level }))
  return { clock, events, lines, stop }
}

const job = { type: 'job', id: 7, kind: 'mail.fetch', stream: 'me', attempt: 2 } as const

describe('events become lines', () => {
  const cases: [event: EngineEvent, line: string][] = [
    [{ ...job, what: 'done', ms: 12.34 }, 'DEBUG job #7 mail.fetch is done stream=me attempt=2 ms=12.3'],
    [
      { ...job, what: 'failed', error: { kind: 'permanent', message: 'refused' } },
      'WARN  job #7 mail.fetch failed for good: refused stream=me attempt=2 errorKind=permanent',
    ],
    [
      { ...job, what: 'stalled' },
      'WARN  job #7 mail.fetch made no progress and was stopped stream=me attempt=2',
    ],
    [{ type: 'mark', stream: 'me', mark: 'h12', position: 12 }, 'DEBUG the mark of me moved to h12'],
    [
      { type: 'bad', stream: 'me', kind: 'mail.fetch', item: 'm1', reason: 'no headers' },
      'WARN  isolated the bad item m1 of me: no headers kind=mail.fetch',
    ],
    [
      { type: 'lease', what: 'lost', owner: 3, jobs: 1200 },
      'WARN  lost the lease of 1,200 jobs: others run them now owner=3',
    ],
    [
      { type: 'lease', what: 'reclaimed', owner: 3, jobs: 1 },
      'WARN  took back 1 job from a process that is gone owner=3',
    ],
    [
      {
        type: 'budget',
        what: 'throttled',
        name: 'gmail',
        rate: 250,
        pausedUntil: Date.UTC(2026, 0, 1, 0, 0, 30),
      },
      'INFO  gmail throttled us and paused it for 30 s rate="250 units/s"',
    ],
    [
      { type: 'budget', what: 'rate', name: 'gmail', rate: 2.5, pausedUntil: null },
      'DEBUG the rate of gmail is now 2.5 units/s',
    ],
    [
      {
        type: 'alert',
        what: 'raised',
        condition: 'bad-rate',
        target: 'me',
        severity: 'critical',
        text: '2 % of the items are bad.',
      },
      'ERROR 2 % of the items are bad. condition=bad-rate target=me severity=critical',
    ],
    [
      { type: 'alert', what: 'cleared', condition: 'bad-rate', target: '', severity: 'warning', text: 'x' },
      'INFO  over: x condition=bad-rate severity=warning',
    ],
    [
      { type: 'pause', what: 'paused', scope: 'stream', target: 'me', code: 'by-hand', reason: 'by hand' },
      'INFO  paused the stream me: by hand',
    ],
    [
      { type: 'pause', what: 'resumed', scope: 'all', target: '', code: 'by-hand', reason: 'by hand' },
      'INFO  resumed everything',
    ],
    [
      { type: 'ledger', what: 'down', detail: 'connection reset' },
      'WARN  the ledger is away: connection reset',
    ],
    [{ type: 'ledger', what: 'up', detail: 'after 3 s' }, 'INFO  the ledger is back: after 3 s'],
    [{ type: 'schedule', name: 'nightly', jobId: 9 }, 'INFO  the schedule nightly fired job=9'],
    [
      { type: 'note', app: 'assist', level: 'warn', code: 'push-refused', text: 'a push was refused' },
      'WARN  assist: a push was refused code=push-refused',
    ],
    [{ type: 'engine', what: 'started', owner: 1 }, 'INFO  the engine is started owner=1'],
  ]
  for (const [event, line] of cases) {
    test(line, async () => {
      const { events, lines } = await listen()
      events.emit(event)
      assert.deepEqual(lines, [line])
    })
  }

  test('without secrets', async () => {
    const { events, lines } = await listen()
    events.emit({ type: 'ledger', what: 'down', detail: 'postgres://me:pw1234@db refused' })
    assert.match(lines[0]!, /postgres:\/\/me:\[redacted\]@db/)
  })
})

describe('a listener', () => {
  test('says nothing of single jobs at the info level, but of those in trouble', async () => {
    const { events, lines } = await listen('info')
    for (const what of ['started', 'done', 'retried', 'skipped', 'failed', 'stalled', 'lost'] as const) {
      events.emit({ ...job, what })
    }
    assert.equal(lines.length, 3)
  })

  test('turns a flood of one sort into a few lines and a count', async () => {
    const { clock, events, lines } = await listen('info')
    for (let i = 0; i < 1_000; i++) events.emit({ ...job, id: i, what: 'failed' })
    assert.equal(lines.length, FLOOD_LINES_MAX)
    events.emit({ ...job, kind: 'mail.store', what: 'failed' })
    assert.equal(lines.length, FLOOD_LINES_MAX + 1)
    await clock.advance(60_000)
    events.emit({ ...job, what: 'failed' })
    assert.equal(lines.length, FLOOD_LINES_MAX + 3)
    assert.equal(lines.at(-2), 'WARN  mail.fetch failed for good: 980 more within a minute')
  })

  test('says once that the ledger is away, then once a minute, and then how long it was', async () => {
    const { clock, events, lines } = await listen('info')
    const seconds = async (n: number): Promise<void> => {
      for (let tick = 0; tick < n * 4; tick++) {
        events.emit({ type: 'ledger', what: 'down', detail: 'connection refused' })
        await clock.advance(250)
      }
    }
    await seconds(59)
    assert.deepEqual(lines, ['WARN  the ledger is away: connection refused'])
    await seconds(66)
    assert.deepEqual(lines.slice(1), [
      'WARN  the ledger is still away, for 1 min by now: connection refused',
      'WARN  the ledger is still away, for 2 min by now: connection refused',
    ])
    for (let part = 0; part < 3; part++) events.emit({ type: 'ledger', what: 'up', detail: 'away for 2 min' })
    assert.deepEqual(lines.slice(3), ['INFO  the ledger is back, after 2 min 5 s'])
    await seconds(1)
    events.emit({ type: 'ledger', what: 'up', detail: 'away for 1 s' })
    assert.deepEqual(lines.slice(4), [
      'WARN  the ledger is away: connection refused',
      'INFO  the ledger is back, after 1 s',
    ])
  })

  test('says the count of a flood before the engine is gone, and when it stops listening', async () => {
    const { events, lines, stop } = await listen('info')
    for (let i = 0; i < 30; i++) events.emit({ ...job, id: i, what: 'failed' })
    events.emit({ type: 'engine', what: 'stopped', owner: 1 })
    assert.match(lines.at(-1)!, /10 more/)
    for (let i = 0; i < 21; i++) events.emit({ ...job, id: i, what: 'failed' })
    stop()
    assert.match(lines.at(-1)!, /1 more/)
    events.emit({ ...job, what: 'failed' })
    assert.match(lines.at(-1)!, /1 more/)
  })
})
