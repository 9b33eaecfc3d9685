/**
 * Compares both sides, the ledger and the wastebaskets with what people did. It knows nothing of how the sync works:
 * only what was saved, by whom, and who took it away.
 *
 * At the end
 * - both sides hold the same, byte for byte, and the three trees of the ledger say so
 * - nothing is open; what was reported had a reason that is true, and is in step once that is gone
 * - what nobody deleted or replaced is in its place or in a conflict copy; where one version counts, the other may be
 *   in the trash, in the recycle bin or among OneDrive's versions instead
 * - no conflict copy holds the same as the file that it is a copy of
 * - OneDrive never had what nobody saved: half of two versions, for example
 * - what a link took the place of stayed in OneDrive while it was there
 * - the books balance, and nothing unfinished is left lying about
 * Where only one direction was on, the other side is what people made of it, and nothing is lost; then both are on.
 */
import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { readdirSync, renameSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { type ConflictPolicy, type Mode, UPLOADS_ONLY_CONFLICT } from '../../src/apps/files/decide.ts'
import { filterSchema } from '../../src/apps/files/filter.ts'
import { streamOf } from '../../src/apps/files/folder-pair.ts'
import { partialName } from '../../src/apps/files/local/place.ts'
import { ownPath } from '../../src/apps/files/local/root.ts'
import { isConflictName, isTemporaryName } from '../../src/apps/files/names.ts'
import { resolveConflict } from '../../src/apps/files/store/conflicts.ts'
import { setFolderPair } from '../../src/apps/files/store/file-store.ts'
import { freeHeld } from '../../src/apps/files/store/guard.ts'
import { nameKey } from '../../src/apps/files/trees.ts'
import { quickXorHash } from '../../src/base/quick-xor-hash.ts'
import { type Tree, treeOf } from './disk-tree.ts'
import type { Side } from './history.ts'
import { type People, plain } from './people.ts'
import { DELETES_ALLOWED, type OracleWorld, PAIR } from './world.ts'

const TIDY_ROUNDS_MAX = 20
const ASKS_MAX = 5
const DECIDING_ROUNDS_MAX = 10
/** Longer than what is left of downloads is kept. */
const SWEPT_AFTER_MS = 8 * 86_400_000
/** What a fault of the simulator looks like to whoever meets it. */
const FAULTY = /OneDrive|HTTP|connection|answer|network|ECONN|socket/i

/** What held for the folder at the end of the history. */
export type Rules = { mode: Mode; policy: ConflictPolicy; isFiltered: boolean }

export type End = {
  rules: Rules
  hasCrashed: boolean
  syncAgain: () => Promise<void>
  /** In another process, with the time as it is by then. */
  beginAgain: () => Promise<void>
}

export async function checkEnd(world: OracleWorld, people: People, end: End): Promise<void> {
  const { rules, syncAgain, hasCrashed } = end
  await askAgain(world, end)
  if (rules.mode !== 'two-way' || rules.isFiltered) {
    checkReachable(world, people)
    people.dropRules()
    await world.change({ mode: 'two-way', filter: filterSchema.parse({}) })
    await syncAgain()
    await askAgain(world, end)
  }
  if (rules.policy === 'manual') await decideAll(world, syncAgain)
  await tidyNamesakes(world, people, syncAgain)
  assert.deepEqual(await world.store.openNodes(PAIR, { limit: 10 }), [], 'open nodes')
  checkSides(people)
  await checkTrees(world, people)
  if (rules.policy === 'keep-both') checkNothingLost(world, people)
  else checkReachable(world, people)
  checkNothingTorn(world, people)
  checkCopies(people, rules)
  await checkBooks(world)
  if (!hasCrashed) checkPartials(world)
  await checkSwept(world, end)
}

export function checkUntouched(side: Side, now: Tree, left: readonly string[]): void {
  assert.deepEqual(
    shown(now),
    left,
    `what is ${side} (+) and what people left there (-), where nothing may change`,
  )
}

/** Nobody deleted what a link has taken the place of: it is in OneDrive until its owner says so. */
export function checkHidden({ drive }: OracleWorld, people: People): void {
  const live = new Set(drive.dump().items.map(({ id }) => id))
  for (const [id, { path, content }] of people.hidden) {
    const isThere = live.has(id) || people.removed.has(content)
    assert.ok(isThere, `${content.slice(0, 12)}… is not in OneDrive since a link took its place at ${path}`)
  }
}

/** Somebody decides about every conflict that waits for it, now this way and now that. */
async function decideAll({ store, clock }: OracleWorld, syncAgain: () => Promise<void>): Promise<void> {
  const states = ['kept-both', 'kept-local', 'kept-remote'] as const
  for (let round = 0; round < DECIDING_ROUNDS_MAX; round++) {
    const open = (await store.conflicts(PAIR)).filter(({ state }) => state === 'open')
    if (open.length === 0) return
    for (const { id } of open) {
      const decided = { id, state: states[id % states.length]!, atMs: clock.now() }
      await store.write((tx) => resolveConflict(tx, PAIR, decided))
    }
    await syncAgain()
  }
  assert.fail('conflicts come up again and again')
}

/** What was given up under faults is tried again when somebody asks, as the command line does. */
async function askAgain(world: OracleWorld, { rules, syncAgain }: End): Promise<void> {
  const { ledger, store } = world
  for (let round = 0; round < ASKS_MAX; round++) {
    const failed = await ledger.jobs({ state: 'failed', stream: streamOf(PAIR), limit: 1_000 })
    for (const { id } of failed) await ledger.redo(id)
    // Who waits for himself with a reason waits for the next whole look.
    const open = await store.openNodes(PAIR, { limit: 1_000 })
    const left = open.filter(({ node, waitsFor, because }) => waitsFor === node && because !== null)
    for (const { node, because } of left) {
      const isLeftOut = rules.isFiltered && /not synced/.test(because!)
      const isOneWay = rules.mode === 'upload-only' && because === UPLOADS_ONLY_CONFLICT
      if (!isLeftOut && !isOneWay) assert.match(because!, FAULTY, `why ${node} was given up: ${because}`)
    }
    const isHeld = await sayYes(world)
    if (left.length + failed.length === 0 && !isHeld) return
    await syncAgain()
  }
}

/** Many deletions or replaced files at once wait for somebody who says yes. */
export async function sayYes({ store }: OracleWorld): Promise<boolean> {
  const { heldDeletes } = await store.folderPair(PAIR)
  if (heldDeletes === null) return false
  await store.write(async (tx) => {
    const allowed = { forcedDeletes: DELETES_ALLOWED, forcedOverwrites: DELETES_ALLOWED }
    await setFolderPair(tx, PAIR, { ...allowed, heldDeletes: null })
    await freeHeld(tx, PAIR)
  })
  return true
}

/**
 * Here names that differ in case only are different, in OneDrive they are not: one of them is reported. Its owner
 * gives it another name.
 */
async function tidyNamesakes(
  world: OracleWorld,
  people: People,
  syncAgain: () => Promise<void>,
): Promise<void> {
  for (let round = 0; round < TIDY_ROUNDS_MAX; round++) {
    const open = await world.store.openNodes(PAIR, { limit: 1_000 })
    if (open.length === 0) return
    const namesakes = namesakesOf(people.here())
    if (namesakes.length === 0) return
    for (const [index, path] of namesakes.entries()) {
      const to = join(dirname(path), `other-${round}-${index}`)
      renameSync(join(world.root, path), join(world.root, to))
    }
    await syncAgain()
  }
}

/** All but one of each: outer ones only, since what is in them moves along. */
export function namesakesOf(tree: Tree): string[] {
  const seen = new Set<string>()
  const found: string[] = []
  for (const path of [...tree.keys()].sort((a, b) => a.split('/').length - b.split('/').length)) {
    const key = `${dirname(path)}/${nameKey(path.slice(path.lastIndexOf('/') + 1))}`
    if (found.some((one) => path.startsWith(`${one}/`))) continue
    if (seen.has(key)) found.push(path)
    seen.add(key)
  }
  return found
}

export function checkSides(people: People): void {
  assert.deepEqual(shown(people.here()), shown(people.there()), 'here (+) and there (-)')
}

/** As text for a person: the form of accents does not count, nor what the service adds to documents. */
export function shown(tree: Tree): string[] {
  return [...tree]
    .map(([path, bytes]) => {
      const name = path.normalize('NFC')
      return bytes === undefined ? `${name}/` : `${name}: ${textOf(bytes)}`
    })
    .sort()
}

function textOf(bytes: Buffer): string {
  const text = plain(bytes)
  return text.length < 200
    ? text.toString()
    : `${text.subarray(0, 20)}… ${text.length} ${hash('sha256', text)}`
}

/** Only one side did something since both agreed: then the other follows, and nothing else happens to it. */
export function checkFollowed(now: Tree, then: Tree): void {
  assert.deepEqual(
    shown(now),
    shown(then),
    'what the sync made of it (+) and what the only one who did something had (-)',
  )
}

async function checkTrees(world: OracleWorld, people: People): Promise<void> {
  const { ledger, drive } = world
  const { items, rootId } = drive.dump()
  const pathOf = new Map(items.map(({ id, path }) => [id, path.replace(/^\//, '').normalize('NFC')]))
  const of = (table: string) =>
    ledger.driver.read((tx) =>
      tx.all<Record<string, string | number | null>>(`SELECT * FROM ${table} WHERE drive = ?`, [PAIR]),
    )
  const below = (parent: string | null | number, name: string): string =>
    parent === rootId ? name : `${pathOf.get(String(parent)) ?? `?${parent}`}/${name}`
  const expected = [...people.there().keys()].map((path) => path.normalize('NFC')).sort()
  const base = await of('file_base')
  const remote = (await of('file_remote')).filter((row) => row.item_id !== rootId && row.is_deleted === 0)
  const local = (await of('file_local')).filter(({ parent_id: parent }) => parent !== null)
  for (const [what, rows] of [
    ['base', base],
    ['remote tree', remote],
  ] as const) {
    const paths = rows.map((row) => below(row.parent_id!, String(row.name)).normalize('NFC')).sort()
    assert.deepEqual(paths, expected, what)
  }
  assert.deepEqual(
    local.filter((row) => row.is_missing !== 0),
    [],
    'missing rows',
  )
  assert.deepEqual(
    local.map(({ item_id: id }) => id).sort(),
    items.map(({ id }) => id).sort(),
    'items of local rows',
  )
  const here = people.here()
  const bytesAt = new Map([...here].map(([path, bytes]) => [path.normalize('NFC'), bytes]))
  for (const row of base) {
    const path = below(row.parent_id!, String(row.name)).normalize('NFC')
    const bytes = bytesAt.get(path)
    const hash = bytes && quickXorHash(bytes)
    assert.equal(row.hash ?? undefined, hash, `the hash of ${path} in the base`)
    assert.equal(row.type, bytes ? 'file' : 'folder', path)
  }
}

/** In its place or in a conflict copy, on both sides; they were found to be equal before. */
function checkNothingLost(world: OracleWorld, people: People): void {
  const live = new Set(
    [...people.here().values()].flatMap((bytes) => (bytes ? [plain(bytes).toString('latin1')] : [])),
  )
  for (const [content, where] of people.saved) {
    if (live.has(content) || people.removed.has(content)) continue
    const text = content.slice(0, 12)
    assert.fail(`${text}… saved ${where}, which nobody removed, is ${whereIs(world, content)}`)
  }
}

/** Somewhere at least. */
function checkReachable(world: OracleWorld, people: People): void {
  const live = new Set<string>()
  for (const bytes of [...people.here().values(), ...people.there().values()]) {
    if (bytes) live.add(plain(bytes).toString('latin1'))
  }
  for (const [content, where] of people.saved) {
    if (live.has(content) || people.removed.has(content)) continue
    assert.notEqual(whereIs(world, content), LOST, `${content.slice(0, 12)}… saved ${where}`)
  }
}

/** Whatever was ever seen in OneDrive is what somebody saved, and not half of two versions of it. */
function checkNothingTorn({ drive }: OracleWorld, people: People): void {
  const { recycleBin, items } = drive.dump()
  for (const { path, contentKey, versions } of [...recycleBin, ...items]) {
    for (const key of [contentKey, ...versions.map((one) => one.contentKey)]) {
      const bytes = key === undefined ? undefined : drive.bytesOf(key)
      if (!bytes || bytes.length === 0) continue
      const text = plain(bytes).toString('latin1')
      assert.ok(people.saved.has(text), `OneDrive had ${text.slice(0, 40)}… at ${path}, which nobody saved`)
    }
  }
}

const LOST = 'LOST'

function whereIs(world: OracleWorld, content: string): string {
  const is = (bytes: Buffer | undefined): boolean =>
    bytes !== undefined && plain(bytes).toString('latin1') === content
  const trash = treeOf(ownPath({ path: world.root }, 'trash'))
  for (const [path, bytes] of trash) if (is(bytes)) return `in the trash as ${path}`
  const { recycleBin, items } = world.drive.dump()
  for (const item of [...recycleBin, ...items]) {
    if (item.contentKey !== undefined && is(world.drive.bytesOf(item.contentKey)))
      return `in the recycle bin as ${item.path}`
    if (item.versions.some(({ contentKey }) => is(world.drive.bytesOf(contentKey))))
      return `a version of ${item.path}`
  }
  return LOST
}

/** What was downloaded has its place. What a crash leaves, or a version that nobody wants, is swept after a while. */
function checkPartials(world: OracleWorld): void {
  const root = { path: world.root }
  const left = readdirSync(ownPath(root, 'partial'))
  for (const { id, cTag, path } of world.drive.dump().items) {
    const cTags = [cTag, null]
    const names = cTags.map((tag) => partialName({ itemId: id, cTag: tag }))
    assert.ok(!names.some((name) => left.includes(name)), `a partial download of ${path} is left`)
  }
}

/** Crashes or not: in the end nothing is left of downloads. */
async function checkSwept(world: OracleWorld, { beginAgain, syncAgain }: End): Promise<void> {
  world.clock.skewMs += SWEPT_AFTER_MS
  await beginAgain()
  await syncAgain()
  const root = { path: world.root }
  assert.deepEqual(readdirSync(ownPath(root, 'partial')), [], 'what is left of downloads')
}

function checkCopies(people: People, { policy }: Rules): void {
  const here = people.here()
  for (const [path, bytes] of here) {
    const name = path.slice(path.lastIndexOf('/') + 1)
    assert.ok(!isTemporaryName(name), `${path} is left from an exchange of names`)
    if (!isConflictName(name)) continue
    assert.ok(!/conflict-.*conflict-/.test(name), `${path} is a conflict copy of a conflict copy`)
    const original = join(dirname(path), name.replace(/\.conflict-\d{8}-\d{6}(?:-\d+)?/, ''))
    const other = here.get(original)
    // Rewritten by the service, and its answer lost: it is not known again as the same.
    if (original.endsWith('.docx')) continue
    // What a namesake that waits for a decision is going to hold, nobody knows before it.
    if (policy === 'manual') continue
    const isSame = bytes !== undefined && other !== undefined && bytes.equals(other)
    assert.ok(!isSame, `${path} is a conflict copy of what ${original} holds`)
  }
}

async function checkBooks({ ledger }: OracleWorld): Promise<void> {
  const stream = (await ledger.streams()).find(({ name }) => name === streamOf(PAIR))!
  const { listed, stored, gone, skipped, bad } = stream
  assert.equal(listed, stored + gone + skipped + bad, 'the books balance')
  assert.equal(stream.unbalanced, 0, 'segments whose books do not balance')
}
