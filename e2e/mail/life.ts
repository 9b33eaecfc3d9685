/**
 * The proof at any length: a mailbox under faults is synced by a process that is killed again and again; after every
 * kill the watermark is compared with the truth; at the end everything listed is stored, gone or bad; and then the
 * clean-up takes out of Gmail exactly what is proven to be stored, and nothing else.
 */
import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { folderName } from '../../src/apps/mail/account.ts'
import { type Random, seededRandom } from '../../src/base/random.ts'
import type { FaultsInput } from '../../src/sim/fault-rules.ts'
import { checkComplete, checkWatermark, look, type Seen, withArchive } from './oracle.ts'
import { ADDRESS, World } from './world.ts'

export type LifeOptions = {
  messages: number
  kills: number
  seed: number
  faults: FaultsInput
  poison: number
  ledgerUrl?: string
  say: (line: string) => void
}

export type LifeReport = {
  kills: number
  listed: number
  stored: number
  gone: number
  bad: number
  requests: number
  archived: number
  refused: number
}

const LIVES_MAX = 1_000
const YEAR_MS = 365 * 86_400_000
const DAMAGED = 3

export async function liveAndArchive(options: LifeOptions): Promise<LifeReport> {
  const { messages, seed, faults, ledgerUrl, say } = options
  const random = seededRandom(seed)
  const world = await World.start({ messages, seed, faults, ...(ledgerUrl !== undefined && { ledgerUrl }) })
  try {
    poison(world, options.poison, random)
    const kills = await liveThrough(world, options, random)
    const seen = await settle(world, options.poison)
    say(
      `killed ${kills} times; ${seen.stream.listed} listed, ${seen.stream.stored} stored, ${seen.stream.gone} gone, ${seen.stream.bad} bad`,
    )
    const { archived, refused } = await archiveProven(world, seen)
    say(`the clean-up took ${archived} out and refused ${refused}`)
    const { listed, stored, gone, bad } = seen.stream
    return { kills, listed, stored, gone, bad, requests: world.served, archived, refused }
  } finally {
    await world.close()
  }
}

function poison(world: World, count: number, random: Random): void {
  const ids = [...world.initial]
  for (let n = 0; n < count; n++) {
    const id = ids[Math.floor(random() * ids.length)]!
    world.sim.faults.poison({ id, mode: n % 2 === 0 ? 'part' : 'batch' })
  }
}

/** Kills are spread over the requests that the whole sync takes, as far as can be told before. */
async function liveThrough(world: World, options: LifeOptions, random: Random): Promise<number> {
  const perLife = Math.max(10, (options.messages / 25) * (1 / (options.kills + 1)))
  let kills = 0
  for (let life = 0; life < LIVES_MAX && kills < options.kills; life++) {
    const ended = await world.killAfter(['mail', 'sync'], Math.ceil(random() * 2 * perLife))
    if (ended) {
      // Finished before its time: the mailbox goes on, and so does the sync.
      world.sim.gmail.mutations(ADDRESS).apply({ what: 'arrive', count: 5, random })
      if (ended.code === 0 || ended.code === 3) break
      assert.fail(`the sync ended with ${ended.code}: ${ended.stderr}`)
    }
    kills += 1
    await withArchive(world, async (archive, ledger) => {
      const seen = await look(archive, ledger)
      checkWatermark(world, seen)
      options.say(
        `kill ${kills}: ${seen.entries.size} stored, watermark ${new Date(seen.markMs).toISOString()}`,
      )
    })
  }
  return kills
}

/** The weather clears, but what is poisoned stays so. */
async function settle(world: World, poisoned: number): Promise<Seen> {
  world.sim.faults.set({ profile: 'none', rules: [] })
  const end = await world.run('mail', 'sync')
  assert.equal(end.code, poisoned > 0 ? 3 : 0, end.stderr)
  return withArchive(world, async (archive, ledger) => {
    const seen = await look(archive, ledger)
    checkWatermark(world, seen)
    await checkComplete(world, archive, seen)
    assert.ok(seen.bad.size <= poisoned, `${seen.bad.size} are bad, ${poisoned} were poisoned`)
    return seen
  })
}

/** Damages a few stored messages first: these must stay in Gmail. */
async function archiveProven(world: World, seen: Seen): Promise<{ archived: number; refused: number }> {
  const cutoffMs = Date.now() - YEAR_MS
  const isCandidate = ({
    internalMs,
    deletedAtMs,
    labelIds,
  }: {
    internalMs: number
    deletedAtMs: number | null
    labelIds: readonly string[]
  }): boolean =>
    internalMs < cutoffMs &&
    deletedAtMs === null &&
    !labelIds.includes('TRASH') &&
    !labelIds.includes('DRAFT')
  const candidates = [...seen.entries.values()].filter(isCandidate)
  const damaged = new Set(candidates.slice(0, DAMAGED).map(({ id }) => id))
  damage(world, damaged)
  const before = new Map([...world.sim.gmail.mailbox(ADDRESS).dump()].map(({ id, labels }) => [id, labels]))
  const end = await world.run('mail', 'clean', '--older-than', '1y', '--action', 'trash', '--yes')
  assert.equal(end.code, 3, end.stderr)
  const expected = new Set(
    candidates.map(({ id }) => id).filter((id) => !damaged.has(id) && !seen.bad.has(id)),
  )
  let archived = 0
  for (const { id, labels, deleted } of world.sim.gmail.mailbox(ADDRESS).dump()) {
    const isNew = labels.includes('TRASH') && !before.get(id)?.includes('TRASH')
    assert.equal(isNew && !deleted, expected.has(id), `${id} ${isNew ? 'was' : 'was not'} taken out`)
    if (isNew) archived += 1
  }
  return { archived, refused: damaged.size }
}

function damage(world: World, ids: ReadonlySet<string>): void {
  const folder = join(world.home, 'mail', folderName(ADDRESS))
  for (const file of readdirSync(folder).filter((name) => /^[\d-]+\.db$/.test(name))) {
    const db = new DatabaseSync(join(folder, file))
    for (const id of ids) {
      db.prepare(
        `UPDATE bodies SET raw = zeroblob(length(raw)) WHERE pos = (SELECT pos FROM messages WHERE id = ?)`,
      ).run(id)
    }
    db.close()
  }
}
