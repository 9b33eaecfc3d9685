import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import type { Envelope } from './contract.ts'
import { compareSequencers, parseEnvelope } from './envelope.ts'

type Attributes = Readonly<Record<string, string>>

function parse(body: unknown, attributes: Attributes = {}, carriesData = false): Envelope {
  const bytes =
    body instanceof Uint8Array ? body : Buffer.from(typeof body === 'string' ? body : JSON.stringify(body))
  return parseEnvelope({ body: bytes, attributes }, { carriesData })
}

function s3Record(key: string, more: Readonly<Record<string, unknown>> = {}) {
  const object = { key, size: 12, eTag: 'abc', versionId: 'v1', sequencer: '0A' }
  return {
    eventVersion: '2.1',
    eventTime: '2026-01-02T03:04:05.000Z',
    eventName: 'ObjectCreated:Put',
    s3: { bucket: { name: 'logs' }, object },
    ...more,
  }
}

function urisOf(envelope: Envelope): string[] {
  assert.equal(envelope.kind, 'objects', JSON.stringify(envelope))
  return envelope.kind === 'objects' ? envelope.objects.map(({ uri }) => uri) : []
}

function codeOf(envelope: Envelope): string {
  return 'code' in envelope ? `${envelope.kind}:${envelope.code}` : envelope.kind
}

const TEST_EVENT = { Service: 'Amazon S3', Event: 's3:TestEvent', Time: '2026-01-01', Bucket: 'logs' }

describe('an S3 event', () => {
  test('announces every record, with its etag, version, order, size and time', () => {
    assert.deepEqual(
      parse({ Records: [s3Record('a'), s3Record('b', { eventName: 'ObjectCreated:Copy' })] }),
      {
        kind: 'objects',
        format: 's3',
        dropped: 0,
        refused: [],
        objects: ['a', 'b'].map((key) => ({
          uri: `s3://logs/${key}`,
          version: { id: 'abc', versionId: 'v1', sequencer: '0A' },
          sizeBytes: 12,
          eventAtMs: Date.UTC(2026, 0, 2, 3, 4, 5),
        })),
      },
    )
  })

  test('has keys as forms encode them: a plus is a space, %2B a plus', () => {
    const keys = ['a+b%2Bc/%C3%A9t%C3%A9.json', '100%25', '%E6%97%A5+1']
    const uris = urisOf(parse({ Records: keys.map((key) => s3Record(key)) }))
    assert.deepEqual(uris, ['s3://logs/a b+c/été.json', 's3://logs/100%', 's3://logs/日 1'])
  })

  test('whose key cannot be decoded is unknown, and nobody guesses', () => {
    assert.equal(codeOf(parse({ Records: [s3Record('100%')] })), 'unknown:bad-record')
  })

  test('has its etag without quotes, and no version where the bucket keeps none', () => {
    const object = { key: 'a', eTag: '"abc"', versionId: 'null' }
    const envelope = parse({ Records: [s3Record('a', { s3: { bucket: { name: 'logs' }, object } })] })
    assert.deepEqual(envelope.kind === 'objects' && envelope.objects[0]!.version, { id: 'abc' })
  })

  test('about deletions and the like is nothing to do; among others it is dropped', () => {
    const removed = s3Record('a', { eventName: 'ObjectRemoved:Delete' })
    assert.equal(codeOf(parse({ Records: [removed] })), 'nothing:other-event')
    const both = parse({ Records: [removed, s3Record('b')] })
    assert.deepEqual([urisOf(both), both.kind === 'objects' && both.dropped], [['s3://logs/b'], 1])
  })

  test('of another version is unknown', () => {
    assert.equal(
      codeOf(parse({ Records: [s3Record('a', { eventVersion: '3.0' })] })),
      'unknown:event-version',
    )
  })

  test('that only tests is nothing to do, also inside SNS', () => {
    assert.equal(codeOf(parse(TEST_EVENT)), 'nothing:test-event')
    const wrapped = { Type: 'Notification', Message: JSON.stringify(TEST_EVENT) }
    assert.equal(codeOf(parse(wrapped)), 'nothing:test-event')
  })
})

describe('other envelopes', () => {
  test('an SNS message holds an S3 event; raw delivery is the event itself', () => {
    const event = { Records: [s3Record('a+b')] }
    const wrapped = parse({ Type: 'Notification', TopicArn: 'arn', Message: JSON.stringify(event) })
    assert.deepEqual(
      [wrapped.kind === 'objects' && wrapped.format, urisOf(wrapped)],
      ['sns', ['s3://logs/a b']],
    )
    assert.deepEqual(urisOf(parse(event)), ['s3://logs/a b'])
  })

  test('SNS messages that wrap each other without end are unknown', () => {
    let message = JSON.stringify({ Records: [s3Record('a')] })
    for (let at = 0; at < 5; at++) message = JSON.stringify({ Type: 'Notification', Message: message })
    assert.equal(codeOf(parse(message)), 'unknown:too-deep')
  })

  test('EventBridge has keys as they are', () => {
    const object = { key: 'a+b%20c', size: 5, etag: 'e', 'version-id': 'v', sequencer: '1F' }
    const event = { source: 'aws.s3', 'detail-type': 'Object Created', time: '2026-01-01T00:00:00Z' }
    const envelope = parse({ ...event, detail: { bucket: { name: 'logs' }, object } })
    assert.deepEqual(urisOf(envelope), ['s3://logs/a+b%20c'])
    const version = { id: 'e', versionId: 'v', sequencer: '1F' }
    assert.deepEqual(envelope.kind === 'objects' && envelope.objects[0]!.version, version)
    assert.equal(codeOf(parse({ ...event, 'detail-type': 'Object Deleted' })), 'nothing:other-event')
  })

  test('an object of GCS is known by its generation', () => {
    const body = {
      kind: 'storage#object',
      bucket: 'b',
      name: 'x y',
      size: '7',
      generation: '1700000000000001',
    }
    const attributes = { eventtype: 'OBJECT_FINALIZE', objectgeneration: '1700000000000001' }
    const expected = [
      { uri: 'gs://b/x y', version: { id: '1700000000000001' }, sizeBytes: 7, eventAtMs: null },
    ]
    for (const one of [parse(body, attributes), parse({ ...body, generation: undefined }, attributes)]) {
      assert.deepEqual(one.kind === 'objects' && one.objects, expected)
    }
    assert.equal(codeOf(parse(body, { eventtype: 'OBJECT_DELETE' })), 'nothing:other-event')
  })

  test('a plain message names one object, or several', () => {
    const one = parse({ uri: 's3://b/a', version: '"e"', size: 3 })
    assert.deepEqual(one.kind === 'objects' && one.objects, [
      { uri: 's3://b/a', version: { id: 'e' }, sizeBytes: 3, eventAtMs: null },
    ])
    assert.deepEqual(urisOf(parse({ uris: ['gs://b/a', { uri: 'https://h/x' }] })), [
      'gs://b/a',
      'https://h/x',
    ])
    assert.equal(codeOf(parse({ uri: 'ftp://b/a' })), 'unknown:bad-uri')
    assert.equal(codeOf(parse({ uris: ['s3://b/a', 5] })), 'unknown:bad-uri')
  })

  test('an address or a version that is longer than databases index is unknown', () => {
    const long = 'ü'.repeat(1_100)
    for (const fields of [
      { uri: `https://h/${long}` },
      { uri: 's3://b/a', version: long },
      { Records: [s3Record(encodeURIComponent(long))] },
    ])
      assert.equal(codeOf(parse(fields)), 'unknown:too-long')
    assert.equal(parse({ uri: `https://h/${'u'.repeat(2_000)}` }).kind, 'objects')
  })

  test('one that is too long is refused alone, and the others of its message are read', () => {
    const long = `s3://b/${'u'.repeat(2_100)}`
    const envelope = parse({
      uris: ['s3://b/a', long, { uri: 's3://b/c', version: 'v'.repeat(600) }, 's3://b/d'],
    })
    assert.deepEqual(urisOf(envelope), ['s3://b/a', 's3://b/d'])
    const refused = envelope.kind === 'objects' ? envelope.refused : []
    assert.deepEqual(
      refused.map(({ code }) => code),
      ['too-long', 'too-long'],
    )
  })

  test('a text that no database keeps is unknown, wherever it stands', () => {
    for (const text of ['a\0', 'a\ud800', '\udc00a']) {
      const uri = 's3://b/a'
      for (const fields of [
        { uri: `s3://b/${text}` },
        { uri, version: text },
        { uri, version: '1', versionId: text },
        { uri, version: '1', sequencer: text },
        { uris: ['s3://b/whole', `s3://b/${text}`] },
      ])
        assert.equal(codeOf(parse(fields)), 'unknown:bad-text', JSON.stringify(fields))
      const record = { ...s3Record('a'), eventVersion: text }
      const refused = parse({ Records: [record] })
      assert.ok(refused.kind === 'unknown' && refused.reason.isWellFormed() && !refused.reason.includes('\0'))
    }
    assert.equal(parse({ uri: 's3://b/grüße-😀' }).kind, 'objects')
  })

  test('a message may carry its data, and of a pipeline that takes them everything unknown is data', () => {
    const carried = parse({ data: { a: 1 } })
    assert.equal(carried.kind === 'data' && Buffer.from(carried.data).toString(), '{"a":1}')
    const any = parse({ level: 'info' }, {}, true)
    assert.equal(any.kind === 'data' && Buffer.from(any.data).toString(), '{"level":"info"}')
    assert.equal(codeOf(parse({ level: 'info' })), 'unknown:no-envelope')
    assert.equal(codeOf(parse('')), 'unknown:empty')
  })
})

describe('whatever the bytes are', () => {
  test('nothing throws', () => {
    const fields = fc.constantFrom(
      'Records',
      'uri',
      'uris',
      'data',
      'Type',
      'Message',
      'source',
      'detail',
      's3',
      'bucket',
    )
    const value = fc.letrec((tie) => ({
      any: fc.oneof(
        { depthSize: 'small' },
        fc.jsonValue(),
        fc.constantFrom('Notification', 'aws.s3', 'ObjectCreated:Put', '%', 's3://a/b', '{"Records":[null]}'),
        fc.array(tie('any'), { maxLength: 3 }),
        fc.dictionary(fields, tie('any'), { maxKeys: 6 }),
      ),
    })).any
    fc.assert(
      fc.property(
        fc.oneof(fc.uint8Array(), value),
        fc.dictionary(fc.constant('eventtype'), fc.string()),
        (body, attributes) => {
          const envelope = parse(body instanceof Uint8Array ? body : (JSON.stringify(body) ?? ''), attributes)
          assert.ok(['objects', 'data', 'nothing', 'unknown'].includes(envelope.kind))
          if (envelope.kind === 'objects') assert.ok(envelope.objects.length > 0)
        },
      ),
      { numRuns: 500 },
    )
  })

  test('JSON that is nested a million deep is unknown or data, and no crash', () => {
    assert.equal(parse('['.repeat(500_000)).kind, 'unknown')
    assert.equal(parse(`{"data":${'['.repeat(2_000)}${']'.repeat(2_000)}}`).kind, 'data')
  })
})

describe('sequencers', () => {
  test('of different lengths are compared as if padded on the right, in any case', () => {
    assert.ok(compareSequencers('0055', '0055AE') < 0)
    assert.equal(compareSequencers('0055ae', '0055AE'), 0)
    assert.equal(compareSequencers('0055', '005500'), 0)
    assert.ok(compareSequencers('1', '0FFFFF') > 0)
  })

  test('are in one order', () => {
    const hex = fc.string({ unit: fc.constantFrom(...'0123456789abcdefABCDEF'), maxLength: 20 })
    fc.assert(
      fc.property(hex, hex, hex, (a, b, c) => {
        assert.equal(compareSequencers(a, b) + compareSequencers(b, a), 0)
        if (compareSequencers(a, b) <= 0 && compareSequencers(b, c) <= 0)
          assert.ok(compareSequencers(a, c) <= 0)
      }),
    )
  })
})
