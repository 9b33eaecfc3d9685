/**
 * Asks the simulator what is true and compares the archive with it. It knows nothing of how the sync works: only
 * which ids were ever listed, which messages there are, and what their bytes are.
 */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { folderName } from '../../src/apps/mail/account.ts'
import { openArchive } from '../../src/apps/mail/store/archive.ts'
import type { Archive, IdEntry } from '../../src/apps/mail/store/contract.ts'
import { MailTables } from '../../src/apps/mail/store/tables.ts'
import { systemClock } from '../../src/base/clock.ts'
import type { Ledger } from '../../src/ledger/ledger.ts'
import { openLedger } from '../../src/ledger/open.ts'
import { ADDRESS, type World } from './world.ts'

const FAR_MS = 8.64e15
const PROOFS = 200

export type Seen = {
  markMs: number
  entries: Map<string, IdEntry>
  bad: Set<string>
  stream: { listed: number; stored: number; gone: number; skipped: number; bad: number; unbalanced: number }
}

export async function withArchive<T>(
  world: World,
  use: (archive: Archive, ledger: Ledger) => Promise<T>,
): Promise<T> {
  const ledger = await openLedger(world.ledgerUrl)
  try {
    const tables = await MailTables.open(ledger)
    const mailbox = await tables.findMailbox(ADDRESS)
    assert.ok(mailbox, 'the mailbox is in the ledger')
    const archive = await openArchive({
      folder: join(world.home, 'mail', folderName(ADDRESS)),
      account: ADDRESS,
      archiveId: mailbox.archive_id,
      shardBy: 'year',
      shardBytesMax: 4e9,
      now: () => systemClock.now(),
    })
    try {
      return await use(archive, ledger)
    } finally {
      await archive.close()
    }
  } finally {
    await ledger.close()
  }
}

export async function look(archive: Archive, ledger: Ledger): Promise<Seen> {
  const entries = new Map<string, IdEntry>()
  for await (const page of archive.entries({ fromMs: -FAR_MS, toMs: FAR_MS })) {
    for (const entry of page) {
      assert.ok(!entries.has(entry.id), `${entry.id} is stored twice`)
      entries.set(entry.id, entry)
    }
  }
  const stream = (await ledger.streams()).find(({ name }) => name === `mail:${ADDRESS}`)!
  const bad = new Set((await ledger.badItems({ limit: 1_000 })).map(({ item }) => item))
  return { markMs: stream.mark_at * 1000, entries, bad, stream }
}

/** What stands below the watermark is accounted for; may be asked at any time, also just after a crash. */
export function checkWatermark(world: World, seen: Seen): void {
  for (const message of world.sim.gmail.mailbox(ADDRESS).dump()) {
    if (!world.initial.has(message.id) || message.internalMs >= seen.markMs) continue
    if (seen.entries.has(message.id) || seen.bad.has(message.id) || message.deleted) continue
    assert.fail(
      `${message.id} of ${new Date(message.internalMs).toISOString()} is below the watermark and not stored`,
    )
  }
}

/** After a sync that ended by itself: everything listed is stored with its bytes, gone, or bad. */
export async function checkComplete(world: World, archive: Archive, seen: Seen): Promise<void> {
  const { stream } = seen
  assert.equal(stream.listed, stream.stored + stream.gone + stream.skipped + stream.bad, 'the books balance')
  assert.equal(stream.unbalanced, 0)
  const hashes = new Map<string, string>()
  for (const message of world.sim.gmail.mailbox(ADDRESS).dump()) {
    const entry = seen.entries.get(message.id)
    if (entry) hashes.set(message.id, message.sha256())
    if (message.deleted) {
      if (entry) assert.notEqual(entry.deletedAtMs, null, `${message.id} is deleted and not marked so`)
      continue
    }
    if (seen.bad.has(message.id)) continue
    assert.ok(entry, `${message.id} is in the mailbox and not in the archive`)
    assert.equal(entry.deletedAtMs, null, `${message.id} is marked as deleted and is not`)
    assert.deepEqual([...entry.labelIds].sort(), [...message.labels].sort(), `labels of ${message.id}`)
  }
  const ids = [...hashes.keys()]
  assert.equal(ids.length, seen.entries.size, 'nothing is stored that never was')
  for (let at = 0; at < ids.length; at += PROOFS) {
    for (const proof of await archive.prove(ids.slice(at, at + PROOFS))) {
      assert.equal(proof.state, 'proven', `${proof.id}: ${proof.detail ?? ''}`)
      const message = await archive.message(proof.id)
      assert.equal(message?.sha256, hashes.get(proof.id), `bytes of ${proof.id}`)
    }
  }
}

/** Everything is there, and nothing is bad. */
export async function checkAll(world: World): Promise<void> {
  await withArchive(world, async (archive, ledger) => {
    const seen = await look(archive, ledger)
    checkWatermark(world, seen)
    await checkComplete(world, archive, seen)
    assert.equal(seen.bad.size, 0)
  })
}
