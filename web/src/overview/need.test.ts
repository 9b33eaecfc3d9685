import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { AlertView } from '../../../src/app/schemas.ts'
import { needsOf } from './need.ts'

const alert = (
  condition: string,
  target: string,
  severity: AlertView['severity'] = 'warning',
): AlertView => ({
  condition,
  target,
  severity,
  text: 'what to do',
  since: 1,
  last: 1,
  count: 1,
})
const pause = (target: string) => ({ scope: 'stream' as const, target, code: 'by-hand', reason: 'x', at: 1 })
const ann = {
  name: 'ann@example.com',
  stream: 'mail:ann@example.com',
  company: 'Google',
  state: 'sign-in' as const,
}

describe('what needs somebody', () => {
  test('is nothing where all goes by itself', () => {
    assert.deepEqual(needsOf({ alerts: [], pauses: [] }, [{ ...ann, state: 'ready' }]), [])
  })

  test('the critical comes first, and each leads to where it is mended', () => {
    const needs = needsOf(
      { alerts: [alert('bad-items', 'mail:a/b'), alert('disk-full', '/home', 'critical')], pauses: [] },
      [],
    )
    assert.deepEqual(
      needs.map(({ title, action }) => [title, action?.href]),
      [
        ['The disk is filling up', undefined],
        ['Items were set aside', '/streams/mail%3Aa%2Fb#bad'],
      ],
    )
  })

  test('a source that has fallen silent leads to it', () => {
    const [need] = needsOf({ alerts: [alert('stale', 'mail:a/b')], pauses: [] }, [])
    assert.deepEqual([need?.title, need?.action?.href], ['Silent for too long', '/streams/mail%3Aa%2Fb'])
  })

  test('a sign-in is told once: not again by its account, nor by the pause that it caused', () => {
    const told = needsOf({ alerts: [alert('sign-in', ann.stream)], pauses: [pause(ann.stream)] }, [ann])
    assert.deepEqual(
      told.map(({ key }) => key),
      ['alert sign-in mail:ann@example.com'],
    )
    const untold = needsOf({ alerts: [], pauses: [pause(ann.stream)] }, [ann])
    assert.deepEqual(
      untold.map(({ key }) => key),
      ['account mail:ann@example.com'],
    )
  })

  test('a pause by hand offers to go on', () => {
    const [need] = needsOf({ alerts: [], pauses: [pause('mail:ben')] }, [])
    assert.deepEqual(need?.resume, { scope: 'stream', target: 'mail:ben' })
  })
})
