import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { type Clock, FakeClock, systemClock } from '../../base/clock.ts'
import type { NewAlert } from '../../ledger/alerts.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import { openLedger } from '../../ledger/open.ts'
import type { SentAlert } from './alert-delivery.ts'
import { type AlertInputs, evaluateAlerts } from './alert-rules.ts'
import { AlertBoard, type AlertBoardOptions, QUIET_MS, STALE_MS } from './alerts.ts'
import { EventStream } from './events.ts'

const MINUTE_MS = 60_000
const ledgerClock = (clock: Clock): Clock => ({ ...systemClock, now: () => clock.now() })

async function openMemory(t: TestContext): Promise<{ ledger: Ledger; clock: FakeClock }> {
  const clock = new FakeClock()
  const ledger = await openLedger('sqlite::memory:', { clock: ledgerClock(clock) })
  t.after(() => ledger.close())
  return { ledger, clock }
}

function openBoard(options: Pick<AlertBoardOptions, 'ledger'> & { clock: FakeClock }) {
  const events = new EventStream(options.clock)
  const seen: string[] = []
  events.on((event) => {
    if (event.type === 'alert')
      seen.push(`${event.what} ${event.severity} ${event.condition} ${event.target}`)
  })
  const sent: SentAlert[] = []
  const errors: string[] = []
  const board = new AlertBoard({
    ...options,
    events,
    sinks: [{ name: 'test', send: async (alert) => void sent.push(alert) }],
    onError: (error, doing) => void errors.push(`${doing}: ${(error as Error).message}`),
  })
  return { board, seen, sent, errors }
}

const alert = (over: Partial<NewAlert> = {}): NewAlert => ({
  condition: 'sign-in',
  target: 'me',
  severity: 'warning',
  text: 'Connect me again.',
  ...over,
})

describe('an alert', () => {
  test('is sent once an hour however often it is raised', async (t) => {
    const { ledger, clock } = await openMemory(t)
    const { board, sent, seen } = openBoard({ ledger, clock })
    for (let minute = 0; minute < 150; minute++) {
      await board.raise(alert())
      await clock.advance(MINUTE_MS)
    }
    assert.deepEqual(
      sent.map(({ at }) => (at - sent[0]!.at) / MINUTE_MS),
      [0, 60, 120],
    )
    assert.equal(seen.length, 3)
    assert.equal((await ledger.alerts())[0]!.count, 150)
  })

  test('is sent at once when it gets worse, and not each time it swings back', async (t) => {
    const { ledger, clock } = await openMemory(t)
    const { board, sent } = openBoard({ ledger, clock })
    for (let minute = 0; minute < 50; minute++) {
      await board.raise(alert({ severity: minute % 2 ? 'critical' : 'warning' }))
      await clock.advance(MINUTE_MS)
    }
    assert.deepEqual(
      sent.map(({ severity }) => severity),
      ['warning', 'critical'],
    )
  })

  test('becomes a warning again when it was not critical for an hour', async (t) => {
    const { ledger, clock } = await openMemory(t)
    const { board } = openBoard({ ledger, clock })
    await board.raise(alert({ severity: 'critical' }))
    await clock.advance(QUIET_MS - 1)
    await board.raise(alert())
    assert.equal(board.raised[0]!.severity, 'critical')
    await clock.advance(1)
    await board.raise(alert())
    assert.equal(board.raised[0]!.severity, 'warning')
    assert.equal((await ledger.alerts())[0]!.severity, 'warning')
  })

  test('that is cleared and comes back within the hour is not sent again', async (t) => {
    const { ledger, clock } = await openMemory(t)
    const { board, sent, seen } = openBoard({ ledger, clock })
    await board.raise(alert())
    await clock.advance(MINUTE_MS)
    assert.equal(await board.clear('sign-in', 'me'), true)
    assert.deepEqual(board.raised, [])
    await clock.advance(MINUTE_MS)
    assert.equal(await board.raise(alert()), false)
    assert.equal(await board.clear('sign-in', 'nobody'), false)
    assert.equal(sent.length, 1)
    assert.deepEqual(seen, ['raised warning sign-in me', 'cleared warning sign-in me'])
  })

  test('carries no secret', async (t) => {
    const { ledger, clock } = await openMemory(t)
    const { board, sent } = openBoard({ ledger, clock })
    await board.raise(alert({ text: 'refused: Bearer abcdefgh' }))
    assert.equal(sent[0]!.text, 'refused: Bearer [redacted]')
    assert.equal((await ledger.alerts())[0]!.text, 'refused: Bearer [redacted]')
  })
})

describe('an update', () => {
  const look = (inputs: Omit<AlertInputs, 'now'>) => evaluateAlerts({ now: 0, ...inputs })
  const signIns = (...streams: string[]) =>
    look({ signIns: streams.map((stream) => ({ stream, reason: '' })) })

  test('raises what holds and clears what no longer does', async (t) => {
    const { ledger, clock } = await openMemory(t)
    const { board, seen } = openBoard({ ledger, clock })
    await board.update(signIns('a', 'b'))
    await board.update(signIns('b'))
    assert.deepEqual(seen, [
      'raised critical sign-in a',
      'raised critical sign-in b',
      'cleared critical sign-in a',
    ])
    assert.deepEqual(
      (await ledger.alerts()).map(({ target }) => target),
      ['b'],
    )
  })

  test('leaves alone what it did not look at', async (t) => {
    const { ledger, clock } = await openMemory(t)
    const { board, seen } = openBoard({ ledger, clock })
    await board.raise(alert({ condition: 'conflict' }))
    await board.update(signIns('a'))
    await clock.advance(2 * STALE_MS)
    await board.update(look({ disks: [] }))
    assert.deepEqual(seen, ['raised warning conflict me', 'raised critical sign-in a'])
  })

  test("does not clear another process's alert until that has fallen silent", async (t) => {
    const { ledger, clock } = await openMemory(t)
    const one = openBoard({ ledger, clock })
    const other = openBoard({ ledger, clock })
    await one.board.update(signIns('a'))
    await clock.advance(STALE_MS)
    await other.board.update(signIns())
    assert.equal((await ledger.alerts()).length, 1)
    await clock.advance(1)
    await other.board.update(signIns())
    assert.equal((await ledger.alerts()).length, 0)
    assert.deepEqual(other.seen, ['cleared critical sign-in a'])
  })
})

describe('a board whose ledger is away', () => {
  test('still sends, once an hour, and does not send again when the ledger is back', async (t) => {
    const { ledger, clock } = await openMemory(t)
    let away = true
    const gone = (): Promise<never> => Promise.reject(new Error('connection lost'))
    const flaky: AlertBoardOptions['ledger'] = {
      now: () => ledger.now(),
      raiseAlert: (...args) => (away ? gone() : ledger.raiseAlert(...args)),
      clearAlert: (...args) => (away ? gone() : ledger.clearAlert(...args)),
      alerts: () => (away ? gone() : ledger.alerts()),
    }
    const { board, sent, errors, seen } = openBoard({ ledger: flaky, clock })
    const verdict = evaluateAlerts({ now: MINUTE_MS, ledger: { downSince: 0, detail: 'connection lost' } })
    for (let minute = 0; minute < 30; minute++) {
      await board.update(verdict)
      await clock.advance(MINUTE_MS)
    }
    assert.equal(sent.length, 1)
    assert.match(errors[0]!, /note the alert ledger-down: connection lost/)
    await board.update(evaluateAlerts({ now: 0, ledger: { downSince: null, detail: '' } }))
    assert.equal(board.raised.length, 1, 'what could not be cleared is remembered')
    away = false
    await board.update(verdict)
    assert.equal(sent.length, 1)
    await board.update(evaluateAlerts({ now: 0, ledger: { downSince: null, detail: '' } }))
    assert.deepEqual(board.raised, [])
    assert.equal(seen.at(-1), 'cleared critical ledger-down ')
  })
})

describe('two processes on one ledger', () => {
  test('send each alert once an hour between them', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'alerts-'))
    const clock = new FakeClock()
    const open = (): Promise<Ledger> =>
      openLedger(`sqlite:${join(folder, 'ledger.db')}`, { clock: ledgerClock(clock), synchronous: 'NORMAL' })
    const ledgers = [await open(), await open()]
    const boards = ledgers.map((ledger) => openBoard({ ledger, clock }))
    for (let minute = 0; minute < 90; minute++) {
      for (const { board } of minute % 2 ? boards : [...boards].reverse()) {
        await board.raise(alert())
        await clock.advance(MINUTE_MS / 2)
      }
    }
    assert.equal(boards.flatMap(({ sent }) => sent).length, 2)
    for (const ledger of ledgers) await ledger.close()
    rmSync(folder, { recursive: true })
  })
})
