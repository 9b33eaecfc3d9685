import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { redate } from './insertion.ts'

const AT_MS = Date.UTC(2009, 1, 13, 23, 31, 30, 456)

function redated(text: string): string | undefined {
  const { raw, altered } = redate(Buffer.from(text, 'latin1'), AT_MS)
  return altered ? Buffer.from(raw).toString('latin1') : undefined
}

describe('a message that is to have the time of its receipt', () => {
  test('stays as it is where its Date header says so already', () => {
    assert.equal(redated('Date: Fri, 13 Feb 2009 23:31:30 +0000\r\n\r\n'), undefined)
    assert.equal(
      redated('From: a\r\nDATE: Sat, 14 Feb 2009\r\n 00:31:30 +0100 (CET)\r\n\r\nhello'),
      undefined,
    )
  })

  test('keeps its former Date header under another name, and its body', () => {
    assert.equal(
      redated(
        'From: \xe4\r\nDate: Mon, 1 Jan 2001 00:00:00 +0000\r\nTo: b\r\n\r\nDate: of the body \xff\r\n',
      ),
      'Date: Fri, 13 Feb 2009 23:31:30 +0000\r\nFrom: \xe4\r\nX-Original-Date: Mon, 1 Jan 2001 00:00:00 +0000\r\nTo: b\r\n\r\nDate: of the body \xff\r\n',
    )
  })

  test('gets a Date header where it has none, with its own line ends', () => {
    assert.equal(redated('From: a\n\nbody'), 'Date: Fri, 13 Feb 2009 23:31:30 +0000\nFrom: a\n\nbody')
    assert.equal(redated('\r\nbody'), 'Date: Fri, 13 Feb 2009 23:31:30 +0000\r\n\r\nbody')
    assert.equal(redated(''), 'Date: Fri, 13 Feb 2009 23:31:30 +0000\r\n')
  })

  test('has one Date header, however many it had', () => {
    const text = redated('Date: Fri, 13 Feb 2009 23:31:30 +0000\r\nDate: nonsense\r\n\r\n')
    assert.equal(text?.match(/^Date:/gm)?.length, 1)
    assert.equal(text?.match(/^X-Original-Date:/gm)?.length, 2)
  })
})
