import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { messageLink } from '../../src/apps/mail/web/links.ts'
import { jobsLink, pathPart, safeAddress, streamLink } from './links.ts'
import { nextPath } from './session.ts'

test('a name with signs of every kind comes back from its address', () => {
  for (const name of ['mail:ann@example.com', 'a/b c', '100%', 'ü?#&']) {
    assert.equal(pathPart(streamLink(name).slice('/streams/'.length)), name)
  }
  assert.equal(messageLink('a/b', 'x y'), '/mail/a%2Fb/x%20y')
})

test('a part that was typed by hand and cannot be decoded is taken as it is', () => {
  assert.equal(pathPart('50%'), '50%')
  assert.equal(pathPart(undefined), '')
})

test('what is not said does not stand in an address', () => {
  assert.equal(jobsLink({ state: '', stream: 'mail:a', parent: undefined }), '/work/jobs?stream=mail%3Aa')
  assert.equal(jobsLink(), '/work/jobs')
})

test('after the sign-in only a page of this site is opened', () => {
  assert.equal(nextPath('?next=%2Fwork%3Fa%3D1'), '/work?a=1')
  for (const next of ['//evil.example', '/\\evil.example', 'https://evil.example', '/sign-in', '']) {
    assert.equal(nextPath(`?next=${encodeURIComponent(next)}`), '/', next)
  }
})

describe('an address to sign in at', () => {
  test('is one of the web', () => {
    assert.equal(safeAddress('https://accounts.google.com/o?a=b'), 'https://accounts.google.com/o?a=b')
    assert.equal(safeAddress('http://127.0.0.1:1/auth'), 'http://127.0.0.1:1/auth')
    assert.equal(safeAddress('javascript:alert(1)'), undefined)
    assert.equal(safeAddress('data:text/html,x'), undefined)
    assert.equal(safeAddress('nonsense'), undefined)
  })
})
