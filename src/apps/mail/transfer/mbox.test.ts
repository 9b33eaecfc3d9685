import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { formatMboxMessage, type MboxItem, type MboxQuoting, readMbox } from './mbox.ts'

async function read(
  text: string | Uint8Array,
  options: { quoting?: MboxQuoting; chunkBytes?: number } = {},
): Promise<MboxItem[]> {
  const bytes = typeof text === 'string' ? Buffer.from(text, 'latin1') : text
  const chunkBytes = options.chunkBytes ?? 7
  async function* chunks(): AsyncGenerator<Uint8Array> {
    for (let at = 0; at < bytes.length; at += chunkBytes) yield bytes.subarray(at, at + chunkBytes)
  }
  return await Array.fromAsync(readMbox(chunks(), { quoting: options.quoting ?? 'mboxrd' }))
}

const raws = (items: readonly MboxItem[]): string[] =>
  items.map((item) =>
    item.type === 'message'
      ? Buffer.from(item.raw).toString('latin1')
      : `! ${item.type === 'damaged' ? item.reason : item.type}`,
  )

const LINE = 'From a@b.c Mon Nov  7 10:00:00 2022'

describe('a mailbox file', () => {
  test('gives each message without the blank line after it', async () => {
    assert.deepEqual(raws(await read(`${LINE}\nA: 1\n\none\n\n${LINE}\nA: 2\n\ntwo\n\n`)), [
      'A: 1\n\none\n',
      'A: 2\n\ntwo\n',
    ])
    assert.deepEqual(raws(await read(`${LINE}\r\nA: 1\r\n\r\none\r\n\r\n${LINE}\r\nA: 2\r\n`)), [
      'A: 1\r\n\r\none\r\n',
      'A: 2\r\n',
    ])
  })

  test('in Takeout names ids, threads, labels and times', async () => {
    const [item] = await read(
      'From 1668392382345678901@xxx Mon Nov 07 10:00:00 +0000 2022\r\nX-GM-THRID: 1668392382345678900\r\nX-Gmail-Labels: =?UTF-8?Q?Inbox,"a,_b",?=\r\n =?UTF-8?Q?Gr=C3=B6=C3=9Fe?=\r\nSubject: s\r\n\r\ntext\r\n\r\n',
    )
    assert.deepEqual(item, {
      type: 'message',
      offset: 0,
      id: BigInt('1668392382345678901').toString(16),
      threadId: BigInt('1668392382345678900').toString(16),
      labelNames: ['Inbox', 'a, b', 'Größe'],
      arrivedMs: Date.UTC(2022, 10, 7, 10),
      raw: Buffer.from('Subject: s\r\n\r\ntext\r\n'),
    })
    assert.equal(item?.type === 'message' && item.id?.length, 16)
  })

  test('tells lines of the file from lines of a letter', async () => {
    const text = `${LINE}\nA: 1\n\n\nFrom the beginning,\nFrom here to 2022\n\n${LINE}\nA: 2\n\n`
    assert.deepEqual(raws(await read(text)), ['A: 1\n\n\nFrom the beginning,\nFrom here to 2022\n', 'A: 2\n'])
  })

  test('of Thunderbird has lines without a date, its own state on top, and messages that were deleted', async () => {
    const message = (text: string, status: string, end = '\r\n'): string =>
      [`X-Mozilla-Status: ${status}`, 'X-Mozilla-Status2: 00000000', ...head(text), '', text, '', ''].join(
        end,
      )
    const head = (text: string): string[] => [`Subject: ${text}`, 'Date: Mon, 7 Nov 2022 09:00:00 +0000']
    const sound = (text: string): string => [...head(text), '', text, ''].join('\r\n')
    const text = `From \r\n${message('one', '0001')}From \r\n${message('two', '0009')}${LINE}\r\n${message('three', '0000')}From a@b.c, today\r\n${message('four', '0001')}`
    for (const chunkBytes of [1, 7, 100_000]) {
      assert.deepEqual(raws(await read(text, { chunkBytes })), [
        sound('one'),
        '! expunged',
        sound('three'),
        sound('four'),
      ])
    }
  })

  test('keeps lines of a letter that begin with From where no message follows them', async () => {
    const letter = 'A: 1\n\nhi\n\nFrom \nTo: the shop\nand home\n\nFrom now on\n\nFrom me\nDate: soon\n'
    assert.deepEqual(raws(await read(`${LINE}\n${letter}`)), [letter])
  })

  test('whose lines have dates keeps letters whole that quote others without any', async () => {
    const letter = 'A: 1\n\nHello\n\nFrom the desk of Bob\nSubject: lunch\nDate: Monday\n\nat noon\n'
    for (const chunkBytes of [1, 100_000]) {
      assert.deepEqual(raws(await read(`${LINE}\n${letter}\n${LINE}\nA: 2\n`, { chunkBytes })), [
        letter,
        'A: 2\n',
      ])
    }
  })

  test('has its quotes taken off as it was quoted', async () => {
    const text = `${LINE}\n>From x\n>>From y\n> From z\n >From\n`
    assert.deepEqual(raws(await read(text)), ['From x\n>From y\n> From z\n >From\n'])
    assert.deepEqual(raws(await read(text, { quoting: 'mboxo' })), ['From x\n>>From y\n> From z\n >From\n'])
    assert.deepEqual(raws(await read(text, { quoting: 'none' })), ['>From x\n>>From y\n> From z\n >From\n'])
  })

  test('that is damaged says where', async () => {
    const text = `rubbish\n${LINE}\n${LINE}\n\n${LINE}\nA: 1\n\nrest`
    const items = await read(text)
    assert.deepEqual(raws(items), [
      '! the file does not begin with a "From " line',
      '! there is no message after the "From " line',
      '! there is no message after the "From " line',
      'A: 1\n\nrest',
    ])
    assert.deepEqual(
      items.map(({ offset }) => offset),
      [0, 8, 8 + LINE.length + 1, 8 + 2 * LINE.length + 3],
    )
  })

  test('may be empty, or have blank lines at its start', async () => {
    assert.deepEqual(await read(''), [])
    assert.deepEqual(raws(await read(`\n\n${LINE}\nA: 1\n`)), ['A: 1\n'])
  })
})

const nasty = fc
  .array(
    fc.oneof(
      fc.constantFrom(
        '\n',
        '\r\n',
        '\r',
        'From ',
        '>',
        '\nFrom ',
        '\n>From ',
        LINE,
        `\n${LINE}\n`,
        ' ',
        '\t',
        'X-Tidemark-Final-Newline: no\n',
        'X-GM-THRID: 1\n',
        'X-Gmail-Labels: a\n',
        '\xff',
        'a: b',
      ),
      fc.string({ maxLength: 5 }),
    ),
    { minLength: 1, maxLength: 20 },
  )
  .map((pieces) => Buffer.from(pieces.join(''), 'latin1'))
  .filter((raw) => raw.length > 0)

const messages = fc.array(
  fc.record({
    raw: nasty,
    id: fc.constantFrom('17274e1a2b3c4d55', 'fb1', 'import-0123456789abcdef01234567'),
    threadId: fc.constantFrom('17274e1a2b3c4d55', 'import-0123456789abcdef01234567'),
    labelNames: fc.uniqueArray(
      fc.constantFrom('Inbox', 'a, b', 'say "x"', 'Größe', '日本', 'back\\slash', '=?x'),
      { maxLength: 4 },
    ),
    arrivedMs: fc.integer({ min: 0, max: 4_000_000_000 }).map((seconds) => seconds * 1_000),
  }),
  { maxLength: 5 },
)

test('what is written is read again to the byte, whatever the chunks', async () => {
  await fc.assert(
    fc.asyncProperty(messages, fc.integer({ min: 1, max: 400 }), async (written, chunkBytes) => {
      const file = Buffer.concat(written.map((message) => formatMboxMessage(message)))
      const items = await read(file, { chunkBytes })
      assert.deepEqual(
        items.map((item) => ({
          ...item,
          offset: 0,
          raw: item.type === 'message' && Buffer.from(item.raw).toString('latin1'),
        })),
        written.map(({ raw, id, threadId, labelNames, arrivedMs }) => ({
          type: 'message',
          offset: 0,
          raw: raw.toString('latin1'),
          id: id.startsWith('import') ? null : id,
          threadId: threadId.startsWith('import') ? null : threadId,
          labelNames,
          arrivedMs,
        })),
      )
    }),
    { numRuns: 400 },
  )
})

test('any bytes are read without failing, and none of them are lost from sight', async () => {
  const pieces = fc.array(fc.oneof(nasty, fc.uint8Array({ maxLength: 30 })), { maxLength: 10 })
  await fc.assert(
    fc.asyncProperty(pieces, fc.integer({ min: 1, max: 50 }), async (some, chunkBytes) => {
      const bytes = Buffer.concat(some)
      const items = await read(bytes, { chunkBytes })
      if (items.length === 0) assert.ok(bytes.every((byte) => byte <= 32))
      // How the file was cut into chunks must not matter.
      assert.deepEqual(raws(items), raws(await read(bytes, { chunkBytes: 1_000_000 })))
    }),
    { numRuns: 400 },
  )
})

test('a message beyond the limit is reported and not held', async () => {
  const block = Buffer.alloc(20_000_000, `${'x'.repeat(99)}\n`)
  async function* chunks(): AsyncGenerator<Uint8Array> {
    yield Buffer.from(`${LINE}\n`)
    for (let count = 0; count < 11; count++) yield block
    yield Buffer.from(`\n${LINE}\nA: 1\n`)
  }
  const items = await Array.fromAsync(readMbox(chunks(), { quoting: 'mboxrd' }))
  assert.deepEqual(raws(items), ['! the message is larger than 200 MB', 'A: 1\n'])
})
