import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { liveAndArchive } from './life.ts'
import { checkComplete, checkWatermark, look, withArchive } from './oracle.ts'
import { ADDRESS, worldsOf } from './world.ts'

const { worldOf } = worldsOf()

type Summary = {
  accounts: { stored: number; listed: number; bad: number; gone: number; watermarkMs: number }[]
}

function summaryOf(stdout: string): Summary {
  return JSON.parse(stdout.trim().split('\n').at(-1)!) as Summary
}

describe('mail sync', () => {
  test('copies a whole mailbox, and an unchanged one costs one call', async () => {
    const settings = { TIDEMARK_MAIL_INDEX: 'on', TIDEMARK_SEARCH_EMBEDDING: 'off' }
    const world = await worldOf({ messages: 400, seed: 11, settings })
    const first = await world.run('mail', 'sync', '--json')
    assert.equal(first.code, 0, first.stderr)
    await withArchive(world, async (archive, ledger) => {
      const seen = await look(archive, ledger)
      assert.equal(seen.entries.size, 400)
      checkWatermark(world, seen)
      await checkComplete(world, archive, seen)
    })
    const { sources } = JSON.parse((await world.run('search', '--coverage', '--json')).stdout)
    const [mail] = sources as { source: string; documents: number; byWords: number }[]
    assert.equal(mail?.source, 'mail')
    assert.ok(mail.documents >= 400 && mail.byWords >= 400, 'what was synced is found by the search')
    world.sim.log.reset()
    const second = await world.run('mail', 'sync', '--json')
    assert.equal(second.code, 0, second.stderr)
    const { requests } = world.sim.log.counts()
    const calls = Object.entries(requests).filter(([name]) => !name.startsWith('oauth'))
    assert.ok(calls.length <= 2, JSON.stringify(requests))
    assert.equal(summaryOf(second.stdout).accounts[0]!.stored, 400)
  })

  test('under faults and killed again and again, all ends stored, gone or bad, and the clean-up takes only what is proven', async () => {
    const lines: string[] = []
    const report = await liveAndArchive({
      messages: 1_000,
      kills: 5,
      seed: 12,
      poison: 2,
      faults: { profile: 'mixed' },
      say: (line) => lines.push(line),
    })
    assert.ok(report.kills >= 3, lines.join('\n'))
    assert.ok(report.archived > 100, lines.join('\n'))
    assert.equal(report.listed, report.stored + report.gone + report.bad)
  })

  test('what arrives, changes and vanishes afterwards is followed, old-dated arrivals too', async () => {
    const world = await worldOf({ messages: 150, seed: 13 })
    assert.equal((await world.run('mail', 'sync')).code, 0)
    const mailbox = world.sim.gmail.mailbox(ADDRESS)
    const ids = [...mailbox.dump()].map(({ id }) => id)
    mailbox.modify(ids[0]!, { add: ['STARRED'], remove: ['UNREAD'] })
    mailbox.delete(ids[1]!)
    const old = mailbox.insert({
      raw: Buffer.from('Subject: late\r\n\r\nfrom long ago'),
      internalMs: Date.UTC(2001, 1, 3),
    })
    const end = await world.run('mail', 'sync')
    assert.equal(end.code, 0, end.stderr)
    await withArchive(world, async (archive, ledger) => {
      const seen = await look(archive, ledger)
      await checkComplete(world, archive, seen)
      assert.ok(seen.entries.has(old.id))
      assert.notEqual(seen.entries.get(ids[1]!)!.deletedAtMs, null)
    })
  })

  test('when the history has expired, a comparison finds what is new, gone and relabelled', async () => {
    const world = await worldOf({ messages: 150, seed: 14 })
    assert.equal((await world.run('mail', 'sync')).code, 0)
    const mailbox = world.sim.gmail.mailbox(ADDRESS)
    const ids = [...mailbox.dump()].map(({ id }) => id)
    for (const id of ids.slice(0, 20)) mailbox.delete(id)
    for (const id of ids.slice(20, 40)) mailbox.modify(id, { add: ['STARRED'], remove: ['INBOX'] })
    mailbox.insert({ raw: Buffer.from('Subject: new\r\n\r\nhello'), labelIds: ['INBOX'] })
    mailbox.expireHistory()
    const end = await world.run('mail', 'sync')
    assert.equal(end.code, 0, end.stderr)
    await withArchive(world, async (archive, ledger) =>
      checkComplete(world, archive, await look(archive, ledger)),
    )
  })
})
