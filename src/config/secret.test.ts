import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { maskPasswords, maskPath } from './secret.ts'

describe('a password in a URL', () => {
  test('is hidden, and the rest stays readable', () => {
    assert.equal(maskPasswords('postgres://ann:s3cret@db:5432/tide'), 'postgres://ann:***@db:5432/tide')
    assert.equal(maskPasswords('postgres://ann@db/tide'), 'postgres://ann@db/tide')
  })

  test('is hidden whole when it holds the characters that end one', () => {
    assert.equal(maskPasswords('postgres://ann:p@ss/w:rd@db/tide'), 'postgres://ann:***@db/tide')
  })

  test('is hidden inside a sentence and in the query', () => {
    assert.equal(
      maskPasswords('no answer from postgres://a:b@c/d today'),
      'no answer from postgres://a:***@c/d today',
    )
    assert.equal(
      maskPasswords('postgres://db/tide?password=x&ssl=1'),
      'postgres://db/tide?password=***&ssl=1',
    )
    assert.equal(maskPasswords('libsql://a.turso.io?authToken=x.y.z'), 'libsql://a.turso.io?authToken=***')
  })
})

describe('the address of a webhook', () => {
  test('is hidden after the host', () => {
    assert.equal(maskPath('https://hooks.example.com/services/T0/B0/x?y=z'), 'https://hooks.example.com/***')
    assert.equal(maskPath('https://user:pass@example.com/'), 'https://example.com')
    assert.equal(maskPath('nonsense'), '***')
  })
})
