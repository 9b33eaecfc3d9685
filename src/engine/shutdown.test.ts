import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import { describe, test } from 'node:test'
import { FakeClock } from '../base/clock.ts'
import { handleSignals, SAME_SIGNAL_MS } from './shutdown.ts'

function install(over: { onStop?: () => Promise<void>; onReload?: () => void } = {}) {
  const process = new EventEmitter()
  const clock = new FakeClock()
  const log: string[] = []
  const uninstall = handleSignals({
    process,
    clock,
    onStop: (signal) => {
      log.push(`stop ${signal}`)
      return over.onStop?.()
    },
    onReload: () => {
      log.push('reload')
      over.onReload?.()
    },
    exit: (code) => void log.push(`exit ${code}`),
    onError: (error, during) => void log.push(`${during} failed: ${(error as Error).message}`),
  })
  return { process, clock, log, uninstall }
}

describe('signals', () => {
  test('the first asks for a graceful stop, the second exits at once with the code of its signal', async () => {
    for (const [first, second, code] of [
      ['SIGINT', 'SIGINT', 130],
      ['SIGTERM', 'SIGTERM', 143],
      ['SIGINT', 'SIGTERM', 143],
      ['SIGTERM', 'SIGINT', 130],
    ] as const) {
      const { process, clock, log } = install()
      process.emit(first)
      assert.deepEqual(log, [`stop ${first}`])
      await clock.advance(SAME_SIGNAL_MS)
      process.emit(second)
      assert.deepEqual(log, [`stop ${first}`, `exit ${code}`])
    }
  })

  test('the same signal again within a blink is the same wish', async () => {
    const { process, clock, log } = install()
    process.emit('SIGINT')
    await clock.advance(SAME_SIGNAL_MS - 1)
    process.emit('SIGINT')
    assert.deepEqual(log, ['stop SIGINT'])
    await clock.advance(1)
    process.emit('SIGINT')
    assert.deepEqual(log, ['stop SIGINT', 'exit 130'])
  })

  test('another signal exits however soon it comes', () => {
    const { process, log } = install()
    process.emit('SIGINT')
    process.emit('SIGTERM')
    assert.deepEqual(log, ['stop SIGINT', 'exit 143'])
  })

  test('SIGHUP reloads as often as it comes, but not while stopping', () => {
    const { process, log } = install()
    process.emit('SIGHUP')
    process.emit('SIGHUP')
    process.emit('SIGTERM')
    process.emit('SIGHUP')
    assert.deepEqual(log, ['reload', 'reload', 'stop SIGTERM'])
  })

  test('a stop or a reload that fails is reported and the next signal still works', async () => {
    const { process, clock, log } = install({
      onStop: () => Promise.reject(new Error('stuck')),
      onReload: () => {
        throw new Error('no such file')
      },
    })
    process.emit('SIGHUP')
    process.emit('SIGINT')
    await clock.advance(SAME_SIGNAL_MS)
    process.emit('SIGINT')
    assert.deepEqual(log, [
      'reload',
      'stop SIGINT',
      'reload failed: no such file',
      'stop failed: stuck',
      'exit 130',
    ])
  })

  test('taken off, they leave nothing behind', () => {
    const { process, log, uninstall } = install()
    uninstall()
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
      process.emit(signal)
      assert.equal(process.listenerCount(signal), 0)
    }
    assert.deepEqual(log, [])
  })
})
