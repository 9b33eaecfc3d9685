import assert from 'node:assert/strict'
import { test } from 'node:test'
import { jobsLink, messageLink, pathPart, streamLink } from './links.ts'
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
