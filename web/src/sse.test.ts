import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EventParser } from './sse.ts'

test('an event is complete with its empty line, wherever the text is cut', () => {
  const text = 'id: a-1\nevent: mark\ndata: {"x":\ndata: 1}\n\n: ping\n\ndata: later\r\n\r\n'
  for (let cut = 0; cut <= text.length; cut++) {
    const parser = new EventParser()
    const events = [...parser.push(text.slice(0, cut)), ...parser.push(text.slice(cut))]
    assert.deepEqual(events, [
      { id: 'a-1', type: 'mark', data: '{"x":\n1}' },
      { id: 'a-1', type: 'message', data: 'later' },
    ])
  }
})

test('comments, unknown fields and events without data are left out', () => {
  const parser = new EventParser()
  assert.deepEqual(parser.push(': ping\n\nretry: 10\nfoo\nevent: empty\n\n'), [])
  assert.deepEqual(parser.push('data\n\n'), [{ id: '', type: 'message', data: '' }])
})

test('a line without end is refused before it fills the memory', () => {
  const parser = new EventParser()
  assert.throws(() => parser.push(`data: ${'x'.repeat(16_000_001)}`), /too large/)
})
