import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { TidemarkError } from '../../base/errors.ts'
import { Output, type OutputStream } from './output.ts'

function capture(part: Partial<OutputStream> = {}): { output: Output; stdout: string[]; stderr: string[] } {
  const stdout: string[] = []
  const stderr: string[] = []
  const out: OutputStream = { ...part, write: (text) => stdout.push(String(text)) }
  return { output: new Output(out, { write: (text) => stderr.push(String(text)) }), stdout, stderr }
}

const listing = {
  columns: [
    { title: 'id', value: ({ id }: { id: number; note: string }) => id },
    { title: 'note', value: ({ note }: { id: number; note: string }) => note },
  ],
  rows: [{ id: 1, note: 'a note that is rather long\u001b[0m' }],
}

describe('a listing', () => {
  test('is a table cut to width on a terminal', () => {
    const { output, stdout } = capture({ isTTY: true, columns: 20 })
    output.listing(listing)
    assert.equal(stdout.join(''), 'ID  NOTE\n1   a note that is …\n')
  })

  test('is whole lines elsewhere', () => {
    const { output, stdout } = capture()
    output.listing(listing)
    assert.equal(stdout.join(''), 'ID\tNOTE\n1\ta note that is rather long\\u001b[0m\n')
  })

  test('is JSON when that was asked for', () => {
    const { output, stdout } = capture()
    output.json = true
    output.listing(listing)
    assert.deepEqual(JSON.parse(stdout.join('')), listing.rows)
    output.listing({ ...listing, rows: [] })
    assert.equal(stdout[1], '[]\n')
  })

  test('without rows says so, beside the result', () => {
    const { output, stdout, stderr } = capture()
    output.listing({ ...listing, rows: [], empty: 'No jobs.' })
    assert.deepEqual([stdout, stderr], [[], ['No jobs.\n']])
  })
})

describe('an error', () => {
  const error = new TidemarkError('the ledger is newer\u001b[2J', {
    kind: 'permanent',
    hint: 'Update Tidemark.',
    code: 'ledger-newer',
    cause: new Error('schema 9'),
  })

  test('says what happened and what to do', () => {
    const { output, stderr } = capture()
    output.error(error)
    assert.equal(stderr.join(''), 'tidemark: the ledger is newer\\u001b[2J\n  Update Tidemark.\n')
  })

  test('that nobody foresaw says how to find out more', () => {
    const { output, stderr } = capture()
    output.error(new TypeError('x is not a function'))
    assert.equal(
      stderr.join(''),
      'tidemark: x is not a function\n  Run it again with --debug to see where.\n',
    )
  })

  test('comes with all causes when that was asked for', () => {
    const { output, stderr } = capture()
    output.debug = true
    output.error(error)
    assert.match(stderr.join(''), /Update Tidemark\.\nTidemarkError: [\s\S]*caused by Error: schema 9\n/)
  })

  test('shows no secret of its causes', () => {
    const { output, stderr } = capture()
    output.debug = true
    const cause = new TypeError('Headers.append: "Bearer ya29.a0secret_secret" is an invalid header value.')
    output.error(new TidemarkError('The connection failed', { kind: 'transient', cause }))
    assert.match(stderr.join(''), /caused by TypeError: Headers\.append/)
    assert.doesNotMatch(stderr.join(''), /a0secret/)
  })

  test('is JSON when that was asked for', () => {
    const { output, stderr } = capture()
    output.json = true
    output.error(error)
    assert.deepEqual(JSON.parse(stderr.join('')), {
      error: {
        message: 'the ledger is newer\u001b[2J',
        hint: 'Update Tidemark.',
        code: 'ledger-newer',
        kind: 'permanent',
      },
    })
  })
})
