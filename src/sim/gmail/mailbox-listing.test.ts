import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { type ListRequest, Mailbox } from './mailbox.ts'

const RAW = Buffer.from('Subject: x\r\n\r\ny')
const START_MS = 1_700_000_000_000

function mailboxOf(times: readonly number[]): { mailbox: Mailbox; ids: string[] } {
  const mailbox = new Mailbox({ address: 'me@example.com', now: () => START_MS })
  const ids = times.map(
    (ms) => mailbox.insert({ raw: RAW, internalMs: START_MS + ms, labelIds: ['INBOX'] }).id,
  )
  return { mailbox, ids }
}

/** Every id that a listing gives, page after page; between pages something may happen. */
function listed(
  mailbox: Mailbox,
  request: ListRequest,
  between: (seen: string[]) => void = () => {},
): string[] {
  const seen: string[] = []
  let pageToken: string | undefined
  do {
    const page = mailbox.list({ ...request, pageToken })
    seen.push(...page.messages.map(({ id }) => id))
    pageToken = page.nextPageToken
    between(seen)
  } while (pageToken)
  return seen
}

describe('listing', () => {
  test('slices that cover all time give every id exactly once', () => {
    const times = fc.array(fc.integer({ min: 0, max: 20_000 }), { maxLength: 60 })
    const cuts = fc.array(fc.integer({ min: 0, max: 20 }), { maxLength: 6 })
    fc.assert(
      fc.property(times, cuts, fc.integer({ min: 1, max: 7 }), (at, cut, maxResults) => {
        const { mailbox, ids } = mailboxOf(at)
        const seconds = [0, ...cut.toSorted((a, b) => a - b), 21].map((s) => START_MS / 1000 + s)
        const seen = seconds
          .slice(1)
          .flatMap((to, n) => listed(mailbox, { q: `after:${seconds[n]} before:${to}`, maxResults }))
        assert.deepEqual(seen.toSorted(), ids.toSorted())
      }),
    )
  })

  test('is newest first, also over pages', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 50 }), { maxLength: 40 }), (times) => {
        const { mailbox } = mailboxOf(times)
        const order = listed(mailbox, { maxResults: 3 }).map((id) => mailbox.get(id)!.internalMs)
        assert.deepEqual(
          order,
          order.toSorted((a, b) => b - a),
        )
      }),
    )
  })

  test('with keyset tokens nothing that stayed is missed or doubled, whatever is deleted or added between pages', () => {
    const times = fc.array(fc.integer({ min: 0, max: 100 }), { minLength: 1, maxLength: 40 })
    const changes = fc.array(fc.tuple(fc.nat(60), fc.boolean()), { maxLength: 30 })
    fc.assert(
      fc.property(times, changes, fc.integer({ min: 1, max: 5 }), (at, plan, maxResults) => {
        const { mailbox, ids } = mailboxOf(at)
        const queue = [...plan]
        const seen = listed(mailbox, { maxResults }, () => {
          const [which, adds] = queue.pop() ?? []
          if (which === undefined) return
          const id = ids[which % ids.length]!
          if (mailbox.get(id)) mailbox.delete(id)
          if (adds) mailbox.insert({ raw: RAW, internalMs: START_MS + which })
        })
        assert.equal(new Set(seen).size, seen.length)
        const stayed = ids.filter((id) => mailbox.get(id))
        assert.deepEqual(
          stayed.filter((id) => !seen.includes(id)),
          [],
        )
      }),
    )
  })

  test('with offset tokens a deletion between pages hides a message that stayed', () => {
    const { mailbox, ids } = mailboxOf(Array.from({ length: 10 }, (_, at) => at))
    mailbox.switches.pageTokens = 'offset'
    const newest = ids.toReversed()
    const seen = listed(mailbox, { maxResults: 4 }, (soFar) => {
      if (soFar.length === 4) mailbox.delete(newest[0]!)
    })
    assert.ok(mailbox.get(newest[4]!))
    assert.ok(!seen.includes(newest[4]!))
  })

  test('offset tokens give everything while nothing changes', () => {
    const { mailbox, ids } = mailboxOf(Array.from({ length: 10 }, (_, at) => at))
    mailbox.switches.pageTokens = 'offset'
    assert.deepEqual(listed(mailbox, { maxResults: 3 }), ids.toReversed())
  })

  test('gives a hundred unless asked, and never more than five hundred', () => {
    const { mailbox } = mailboxOf(Array.from({ length: 620 }, (_, at) => at))
    assert.equal(mailbox.list().messages.length, 100)
    assert.equal(mailbox.list({ maxResults: 5000 }).messages.length, 500)
    assert.equal(mailbox.list({ maxResults: 0 }).messages.length, 100)
  })

  test('a page that ends exactly at the last message has no token', () => {
    const { mailbox } = mailboxOf([1, 2, 3])
    assert.equal(mailbox.list({ maxResults: 3 }).nextPageToken, undefined)
    assert.ok(mailbox.list({ maxResults: 2 }).nextPageToken)
  })

  test('the estimate is near the number of results but not to be relied on', () => {
    const { mailbox } = mailboxOf(Array.from({ length: 300 }, (_, at) => at))
    const { resultSizeEstimate } = mailbox.list({ maxResults: 50 })
    assert.notEqual(resultSizeEstimate, 300)
    assert.ok(resultSizeEstimate > 250 && resultSizeEstimate < 400, String(resultSizeEstimate))
    assert.equal(mailbox.list({ q: 'subject:nothing' }).resultSizeEstimate, 0)
  })

  test('a broken token is refused', () => {
    assert.throws(() => mailboxOf([1]).mailbox.list({ pageToken: 'nonsense' }), /pageToken/)
  })
})
