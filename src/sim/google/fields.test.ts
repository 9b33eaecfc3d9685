import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { GoogleError } from './errors.ts'
import { applyFields, parseFields, selects } from './fields.ts'

const RESOURCE = {
  id: 'm1',
  payload: {
    headers: [
      { name: 'Subject', value: 'Hi' },
      { name: 'From', value: 'a' },
    ],
    body: { size: 3 },
  },
  parts: [{ id: '1', deep: { a: 1, b: 2 } }],
}

function pick(fields: string): unknown {
  return applyFields(RESOURCE, parseFields(fields))
}

describe('fields', () => {
  test('picks fields, paths, lists below and everything', () => {
    assert.deepEqual(pick('id'), { id: 'm1' })
    assert.deepEqual(pick('payload/headers/name,id'), {
      id: 'm1',
      payload: { headers: [{ name: 'Subject' }, { name: 'From' }] },
    })
    assert.deepEqual(pick('payload(headers(value),body)'), {
      payload: { headers: [{ value: 'Hi' }, { value: 'a' }], body: { size: 3 } },
    })
    assert.deepEqual(pick('parts/deep/b'), { parts: [{ deep: { b: 2 } }] })
    assert.deepEqual(pick('parts(*)'), { parts: RESOURCE.parts })
    assert.deepEqual(pick('payload/body,payload/headers/name'), {
      payload: { headers: [{ name: 'Subject' }, { name: 'From' }], body: { size: 3 } },
    })
    assert.equal(pick('*'), RESOURCE)
  })

  test('a field that is not there is left out', () => {
    assert.deepEqual(pick('nothing,id'), { id: 'm1' })
    assert.deepEqual(pick('toString'), {})
    assert.deepEqual(pick('__proto__'), {})
  })

  test('says which fields are wanted', () => {
    assert.ok(selects(parseFields(null), 'raw'))
    assert.ok(selects(parseFields('id,raw'), 'raw'))
    assert.ok(!selects(parseFields('id'), 'raw'))
  })

  test('what is no selection is refused, never a crash', () => {
    for (const text of ['a(', 'a)', 'a,,b', '(a)', 'a/', 'a b', '('.repeat(100), 'a/'.repeat(2_000)]) {
      assert.throws(() => parseFields(text), GoogleError, text)
    }
    fc.assert(
      fc.property(fc.string(), (text) => {
        try {
          applyFields(RESOURCE, parseFields(text))
        } catch (error) {
          assert.ok(error instanceof GoogleError)
        }
      }),
    )
  })
})
