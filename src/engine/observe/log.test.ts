import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { FakeClock } from '../../base/clock.ts'
import { TidemarkError } from '../../base/errors.ts'
import { createLogger, LOG_LEVELS, type Logger, type LoggerOptions, silentLogger } from './log.ts'

async function open(
  options: Partial<LoggerOptions> & { isTTY?: boolean } = {},
): Promise<{ logger: Logger; lines: string[] }> {
  const lines: string[] = []
  const stream = { isTTY: options.isTTY, write: (text: string) => void lines.push(text) }
  const logger = await createLogger({ clock: new FakeClock(), stream, ...options })
  return { logger, lines }
}

describe('a logger', () => {
  for (const format of ['pretty', 'json'] as const) {
    test(`writes whole lines from its level up (${format})`, async () => {
      for (const level of LOG_LEVELS) {
        const { logger, lines } = await open({ level, format })
        for (const each of LOG_LEVELS) logger[each](`a ${each} line`)
        assert.equal(lines.length, LOG_LEVELS.length - LOG_LEVELS.indexOf(level))
        assert.ok(lines.every((line) => line.endsWith('\n')))
      }
    })

    test(`changes its level for itself and all its children while it runs (${format})`, async () => {
      const { logger, lines } = await open({ format })
      const child = logger.child({ stream: 'me' }).child({ kind: 'mail.fetch' })
      child.debug('unheard')
      logger.level = 'debug'
      child.debug('heard')
      assert.equal(child.enabled('debug'), true)
      child.level = 'error'
      logger.warn('unheard')
      assert.equal(lines.length, 1)
      assert.match(lines[0]!, /heard/)
      assert.match(lines[0]!, /mail\.fetch/)
    })

    test(`writes no secret, wherever it stands (${format})`, async () => {
      const { logger, lines } = await open({ format, level: 'trace' })
      const secret = 's3cr3t-Value'
      const cause = new Error(`postgres://me:${secret}@db/x refused`)
      logger.child({ account: { refresh_token: secret } }).warn(`GET /?access_token=${secret} gave 401`, {
        request: {
          headers: { Authorization: `Bearer ${secret}` },
          deep: [{ list: [{ client_secret: secret }] }],
        },
        error: new TidemarkError(`Bearer ${secret} is not valid`, { kind: 'auth', cause }),
      })
      assert.ok(lines.length > 0)
      assert.ok(!lines.join('').includes(secret), lines.join(''))
      assert.match(lines.join(''), /\[redacted\]/)
    })
  }
})

describe('lines for programs', () => {
  test('are JSON with level, time, message and fields', async () => {
    const { logger, lines } = await open({ format: 'json' })
    logger.child({ stream: 'me' }).info('fetched', { n: 3, time: 'now', error: new Error('late') })
    const { error, ...rest } = JSON.parse(lines[0]!)
    assert.deepEqual(rest, {
      level: 'info',
      time: '2026-01-01T00:00:00.000Z',
      stream: 'me',
      n: 3,
      msg: 'fetched',
    })
    assert.equal(error.message, 'late')
  })
})

describe('lines for people', () => {
  test('hold time, level, message and fields in one plain line', async () => {
    const { logger, lines } = await open()
    logger.warn('mail.fetch failed', {
      job: 12,
      reason: 'not found',
      list: [1, 2],
      none: null,
      error: new Error('no'),
    })
    assert.deepEqual(lines, [
      '2026-01-01T00:00:00.000Z WARN  mail.fetch failed job=12 reason="not found" list=[1,2] error=no\n',
    ])
  })

  test('have colour on a terminal only, unless asked for otherwise', async () => {
    for (const [options, colour] of [
      [{ isTTY: true }, true],
      [{ isTTY: false }, false],
      [{ isTTY: true, colour: false }, false],
      [{ colour: true }, true],
    ] as const) {
      const { logger, lines } = await open(options)
      logger.info('hello')
      assert.equal(lines[0]!.includes('\u001b['), colour)
    }
  })

  test('show a stack only when details are asked for', async () => {
    const { logger, lines } = await open()
    logger.error('broken', { error: new Error('oops') })
    assert.equal(lines.length, 1)
    logger.level = 'debug'
    logger.error('broken', { error: new Error('oops') })
    assert.match(lines[2]!, /^ {4}at /)
  })

  test('cannot be forged or steer the terminal by what they quote', async () => {
    const { logger, lines } = await open()
    logger.info('file a\nERROR forged\u001b[2J', { name: 'b\r\u0007\n', 'k\ney': 'v' })
    assert.equal(lines.length, 1)
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
    assert.doesNotMatch(lines[0]!.slice(0, -1), /[\u0000-\u001f]/)
  })
})

test('the silent logger says nothing, and its children neither', () => {
  assert.equal(silentLogger.enabled('error'), false)
  assert.equal(silentLogger.child({}), silentLogger)
  silentLogger.error('unheard')
})
