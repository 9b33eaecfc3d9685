/**
 * Histories of a folder and a drive on paper: what people do on both sides, what is seen of it, planned and done, in
 * any order, with crashes in between; and what must be true once everyone is quiet.
 */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { isConflictName } from './names.ts'
import type { PaperFile } from './paper-sides.suite.ts'
import { type Job, PaperWorld } from './paper-world.suite.ts'
import { resolveConflict } from './store/conflicts.ts'
import type { OpenNode } from './store/contract.ts'
import { allRows, strandedNodes } from './store/file-store.suite.ts'
import type { FileStore } from './store/file-store.ts'
import { localNode, type NodeKey, nameKey } from './trees.ts'

type Side = 'here' | 'there'

/** What people do. Numbers choose among what is there at that time. */
type Deed =
  | { do: 'make'; side: Side; type: 'file' | 'folder'; to: number; name: number }
  | { do: 'edit' | 'delete' | 'replace' | 'again' | 'case'; side: Side; at: number }
  | { do: 'move'; side: Side; at: number; to: number; name: number }
  | { do: 'rename'; side: Side; at: number; name: number }
  | { do: 'swap'; side: Side; at: number; with: number }
  /** The very same content as something on the other side has. */
  | { do: 'copy'; side: Side; at: number; to: number; name: number }

/** What the sync does. */
type Move =
  | { do: 'hear'; pageSize: number; isTwice: boolean }
  | { do: 'look'; steps: number }
  | { do: 'glance'; at: number }
  /** `between`: its rows were read, and nothing of it is written. */
  | { do: 'plan'; between?: Step[] }
  /** Somebody decides about a conflict. */
  | { do: 'decide'; at: number; state: Choice }

type Choice = 'kept-both' | 'kept-local' | 'kept-remote'
type Run = { do: 'run'; pick: number; isCrash: boolean; before: Step[]; between: Step[] }
/** `ask`: from now on people decide about conflicts. */
export type Step = Deed | Move | Run | { do: 'settle' } | { do: 'ask' }

const NAMES = ['a', 'b', 'c.txt', 'B', 'd', 'e.txt', 'A', 'bad:name'] as const
const RARE = 6

const WHOLE = 1_000

const number = fc.nat({ max: 30 })
const side = fc.constantFrom<Side>('here', 'there')
const name = fc.oneof(
  { weight: 9, arbitrary: fc.nat({ max: RARE - 1 }) },
  { weight: 1, arbitrary: fc.integer({ min: RARE, max: NAMES.length - 1 }) },
)
const type = fc.constantFrom<'file' | 'folder'>('file', 'folder')

const deed: fc.Arbitrary<Deed> = fc.oneof(
  { weight: 5, arbitrary: fc.record({ do: fc.constant('make'), side, type, to: number, name }) },
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constantFrom('edit', 'edit', 'delete', 'delete', 'replace', 'again', 'case'),
      side,
      at: number,
    }),
  },
  { weight: 5, arbitrary: fc.record({ do: fc.constant('move'), side, at: number, to: number, name }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('rename'), side, at: number, name }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('swap'), side, at: number, with: number }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('copy'), side, at: number, to: number, name }) },
) as fc.Arbitrary<Deed>

const move: fc.Arbitrary<Move> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('hear'),
      pageSize: fc.constantFrom(1, 2, 3, 5, WHOLE),
      isTwice: fc.boolean(),
    }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('look'), steps: fc.constantFrom(1, 2, 4, 8, WHOLE) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('glance'), at: number }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('plan') }) },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('decide'),
      at: number,
      state: fc.constantFrom<Choice>('kept-both', 'kept-local', 'kept-remote'),
    }),
  },
) as fc.Arbitrary<Move>

/** While an action is under way, others begin and end. */
const other: fc.Arbitrary<Run> = fc.record({
  do: fc.constant('run' as const),
  pick: number,
  isCrash: fc.boolean(),
  before: fc.constant([]),
  between: fc.constant([]),
})
/** Something happens, and is seen at once. */
const news: fc.Arbitrary<Step[]> = deed.map((one) => [
  one,
  one.side === 'there' ? { do: 'hear', pageSize: WHOLE, isTwice: false } : { do: 'look', steps: WHOLE },
])
const anything: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof({ weight: 4, arbitrary: deed }, { weight: 3, arbitrary: move }, { weight: 2, arbitrary: other }),
  { maxLength: 3, size: 'max' },
)
const moment = fc.oneof(
  { weight: 2, arbitrary: anything },
  { weight: 1, arbitrary: news },
  { weight: 1, arbitrary: fc.tuple(news, anything).map((both) => both.flat()) },
)
const run: fc.Arbitrary<Run> = fc.record({
  do: fc.constant('run' as const),
  pick: number,
  isCrash: fc.boolean(),
  before: moment,
  between: moment,
})

/** Actions end while a plan is made of rows that were read before. */
const raced: fc.Arbitrary<Step> = fc
  .tuple(moment, fc.array(run, { maxLength: 2, size: 'max' }))
  .map(([anyhow, runs]) => ({ do: 'plan', between: [...anyhow, ...runs] }))

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 5, arbitrary: deed },
  { weight: 4, arbitrary: move },
  { weight: 1, arbitrary: raced },
  { weight: 4, arbitrary: run },
  { weight: 1, arbitrary: fc.constant({ do: 'settle' as const }) },
)

/** Something to begin with, that both sides agree on; then anything. */
export const histories: fc.Arbitrary<Step[]> = fc
  .tuple(
    fc.array(deed, { maxLength: 14, size: 'max' }),
    fc.array(step, { maxLength: 40, size: 'max' }),
    fc.constantFrom<Step[]>([], [], [{ do: 'ask' }]),
  )
  .map(([start, rest, asked]) => [...asked, ...start, { do: 'settle' }, ...rest])

const ROUNDS_MAX = 12
const RUNS_MAX = 400
const DECIDING_ROUNDS_MAX = 10

export class History {
  readonly world: PaperWorld
  readonly #saved = new Set<string>()
  /** Deleted or overwritten by someone who had it before their eyes. */
  readonly #given = new Set<string>()
  /** What conflict copies held while people did something. */
  readonly #copies = new Set<string>()
  readonly #running = new Set<Job>()
  #contents = 0

  constructor(world: PaperWorld) {
    this.world = world
  }

  async step(one: Step): Promise<void> {
    const { world } = this
    if (one.do !== 'run' && one.do !== 'settle' && one.do !== 'plan') world.say(JSON.stringify(one))
    await this.#do(one)
    await this.#checkWaits()
  }

  async #do(one: Step): Promise<void> {
    const { world } = this
    if (one.do === 'hear') await world.hear(one.pageSize, one)
    else if (one.do === 'look') await world.look(one.steps)
    else if (one.do === 'glance')
      await world.look(Number.POSITIVE_INFINITY, pick(world.here.folders(), one.at))
    else if (one.do === 'plan') await world.plan(this.#all(one.between ?? []))
    else if (one.do === 'ask') world.askPeople()
    else if (one.do === 'decide') await this.#resolve(one)
    else if (one.do === 'settle') await this.settle()
    else if (one.do === 'run') await this.#run(one)
    else this.#act(one)
  }

  async #run({ pick: at, isCrash, before, between }: Run): Promise<void> {
    const job = pick(this.world.ready(), at)
    if (!job || this.#running.has(job)) return
    this.#running.add(job)
    await this.world.run(job, { before: this.#all(before), between: this.#all(between), isCrash })
    this.#running.delete(job)
  }

  #all(steps: readonly Step[]): () => Promise<void> {
    return async () => {
      for (const one of steps) await this.step(one)
    }
  }

  async #resolve({ at, state }: { at: number; state: Choice }): Promise<boolean> {
    const { store, name: pair, clock } = this.world
    const conflict = pick(await store.conflicts(pair, { state: 'open' }), at)
    if (!conflict) return false
    await store.write((tx) => resolveConflict(tx, pair, { id: conflict.id, state, atMs: clock.now() }))
    return true
  }

  /** Whoever waits for another is going to be woken: that one is in work, to be planned, or waits for such. */
  async #checkWaits(): Promise<void> {
    const stranded = strandedNodes([...(await this.#open()).values()])
    assert.deepEqual(stranded, [], 'it waits for something that does not move')
  }

  #act(one: Deed): void {
    this.#noteCopies()
    if (one.side === 'here') this.#actHere(one)
    else this.#actThere(one)
    this.#noteCopies()
  }

  #noteCopies(): void {
    const { here, there } = this.world
    for (const { name: known, content } of [...here.list('file'), ...there.list('file')])
      if (isConflictName(known)) this.#copies.add(content)
  }

  #save(): string {
    this.#contents += 1
    // Some have the same size as others, some do not.
    const content = `${'.'.repeat(this.#contents % 3)}c${String(this.#contents).padStart(3, '0')}`
    this.#saved.add(content)
    return content
  }

  #actHere(one: Deed): void {
    const { here, there } = this.world
    if (one.do === 'make' || one.do === 'copy') {
      const folder = pick(here.folders(), one.to)!
      const source = one.do === 'copy' ? pick(there.list('file'), one.at) : undefined
      if (one.do === 'copy' && !source) return
      const kind = one.do === 'make' ? one.type : 'file'
      const isFree = here.child(folder.id, NAMES[one.name]!) === undefined
      if (isFree)
        here.make(folder.id, NAMES[one.name]!, {
          type: kind,
          content: kind === 'file' ? (source?.content ?? this.#save()) : '',
        })
      return
    }
    const thing = pick(here.list(one.do === 'edit' ? 'file' : undefined), one.at)
    if (!thing) return
    if (one.do === 'edit') {
      this.#given.add(thing.content)
      here.write(thing.id, this.#save())
    } else if (one.do === 'move' || one.do === 'rename') {
      const folder = one.do === 'move' ? pick(here.folders(), one.to)!.id : thing.parentId!
      const isFree = here.child(folder, NAMES[one.name]!) === undefined
      if (isFree && !here.isInside(folder, thing.id)) here.move(thing.id, folder, NAMES[one.name]!)
    } else if (one.do === 'case') {
      const other = otherCase(thing.name)
      if (!here.child(thing.parentId!, other)) here.move(thing.id, thing.parentId!, other)
    } else if (one.do === 'swap') {
      const other = pick(here.list(), one.with)!
      if (!here.isInside(other.id, thing.id) && !here.isInside(thing.id, other.id))
        here.exchange(thing.id, other.id)
    } else this.#remakeHere(one.do, thing)
  }

  #remakeHere(how: 'delete' | 'replace' | 'again', thing: PaperFile): void {
    const { here } = this.world
    for (const one of here.branch(thing.id)) this.#given.add(one.content)
    const { parentId, name: called, type: kind } = thing
    here.remove(thing.id)
    if (how === 'delete') return
    const other = how === 'again' ? kind : kind === 'file' ? 'folder' : 'file'
    here.make(parentId!, called, { type: other, content: other === 'file' ? this.#save() : '' })
  }

  #actThere(one: Deed): void {
    const { here, there } = this.world
    if (one.do === 'make' || one.do === 'copy') {
      const folder = pick(there.folders(), one.to)!
      const source = one.do === 'copy' ? pick(here.list('file'), one.at) : undefined
      if ((one.do === 'copy' && !source) || isIllegal(NAMES[one.name]!)) return
      const kind = one.do === 'make' ? one.type : 'file'
      const isFree = there.child(folder.id, NAMES[one.name]!) === undefined
      if (isFree)
        there.make(folder.id, NAMES[one.name]!, {
          type: kind,
          content: kind === 'file' ? (source?.content ?? this.#save()) : '',
        })
      return
    }
    const item = pick(there.list(one.do === 'edit' ? 'file' : undefined), one.at)
    if (!item) return
    if (one.do === 'edit') {
      this.#given.add(item.content)
      there.write(item.id, this.#save())
    } else if (one.do === 'move' || one.do === 'rename') {
      const folder = one.do === 'move' ? pick(there.folders(), one.to)!.id : item.parentId!
      if (!isIllegal(NAMES[one.name]!)) there.move(item.id, folder, NAMES[one.name]!)
    } else if (one.do === 'case') there.move(item.id, item.parentId!, otherCase(item.name))
    else if (one.do === 'swap') {
      const other = pick(there.list(), one.with)!
      if (!there.isInside(other.id, item.id) && !there.isInside(item.id, other.id))
        there.exchange(item.id, other.id)
    } else {
      there.remove(item.id)
      if (one.do === 'delete') return
      const other = one.do === 'again' ? item.type : item.type === 'file' ? 'folder' : 'file'
      there.make(item.parentId!, item.name, { type: other, content: other === 'file' ? this.#save() : '' })
    }
  }

  /** Nobody does anything any more: both sides come to the same, and stay there. */
  async settle(): Promise<void> {
    const { world } = this
    world.say('--- quiet')
    for (let round = 1; ; round++) {
      world.say(`round ${round}`)
      await world.recordAll()
      await world.lookAll()
      await this.#drain()
      const open = await this.#unsettled()
      if (open.length === 0 && (await this.#isQuiet())) break
      if (round === ROUNDS_MAX)
        assert.fail(`not settled after ${ROUNDS_MAX} rounds:\n${await world.openText()}`)
    }
    await this.#checkRows()
    await this.#checkAsked()
    await this.#checkEqual()
    this.#checkKept()
    this.#checkCopies()
    world.say('--- settled')
  }

  /** What waits for people goes on once they have decided; that may free a name which two others want. */
  async decideAll(): Promise<void> {
    const states: Choice[] = ['kept-both', 'kept-local', 'kept-remote']
    for (let round = 0; round < DECIDING_ROUNDS_MAX; round++) {
      let count = 0
      while (await this.#resolve({ at: 0, state: states[count % states.length]! })) count += 1
      if (count === 0) return
      await this.settle()
    }
    assert.fail('conflicts come up again and again')
  }

  async #drain(): Promise<void> {
    const { world } = this
    for (let runs = 0; ; ) {
      await world.plan()
      const jobs = world.ready()
      if (jobs.length === 0) return
      for (const job of jobs) {
        await world.run(job)
        runs += 1
        if (runs > RUNS_MAX) assert.fail(`planning does not come to an end:\n${await world.openText()}`)
      }
    }
  }

  /** Open nodes that are not left for a reason: a sync would not end. */
  async #unsettled(): Promise<OpenNode[]> {
    const open = await this.#open()
    return [...open.values()].filter(({ planned, because }) => planned !== null || because === null)
  }

  async #open(): Promise<Map<NodeKey, OpenNode>> {
    const open = await this.world.store.openNodes(this.world.name, { limit: 10_000 })
    return new Map(open.map((node) => [node.node, node]))
  }

  /** Another look at both sides finds nothing new. */
  async #isQuiet(): Promise<boolean> {
    const before = JSON.stringify([...(await this.#open()).keys()])
    await this.world.recordAll()
    await this.world.lookAll()
    await this.#drain()
    return (
      before === JSON.stringify([...(await this.#open()).keys()]) && (await this.#unsettled()).length === 0
    )
  }

  #rows() {
    return allRows(this.world.store, this.world.name)
  }

  /** The trees are what there is, and the base is what both sides have. */
  async #checkRows(): Promise<void> {
    const { here, there } = this.world
    const open = await this.#open()
    const { local, remote, base } = await this.#rows()
    const places = (list: readonly string[]): string[] => [...list].sort()
    assert.deepEqual(
      places(
        remote
          .filter((row) => !row.isDeleted)
          .map((row) => `${row.itemId} ${row.parentId}/${row.name} ${row.cTag}`),
      ),
      places(
        [...there.things.values()].map(
          (one) => `${one.id} ${one.parentId}/${one.name} ${one.id === 'root' ? row0(remote) : one.cTag}`,
        ),
      ),
      'the remote tree is not what OneDrive has',
    )
    const inoOf = new Map(local.map((row) => [row.id, row.ino]))
    assert.deepEqual(
      places(
        local
          .filter((row) => !row.isMissing)
          .map(
            (row) =>
              `${row.ino} ${row.parentId === null ? null : inoOf.get(row.parentId)}/${row.name} ${row.type}`,
          ),
      ),
      places([...here.things.values()].map((one) => `${one.id} ${one.parentId}/${one.name} ${one.type}`)),
      'the local tree is not what the folder has',
    )
    const bases = new Map(base.map((row) => [row.itemId, row]))
    for (const row of remote) {
      if (row.parentId === null || open.has(`i:${row.itemId}`)) continue
      const known = bases.get(row.itemId)
      // Of an item that nobody here ever knew, only that it is gone may be left.
      if (row.isDeleted && !known && row.name === '') continue
      assert.ok(!row.isDeleted, `${row.itemId} is deleted and not open, and its row is still there`)
      assert.ok(known, `${row.itemId} has no base`)
      assert.deepEqual([known.parentId, known.name, known.cTag], [row.parentId, row.name, row.cTag], 'base')
    }
    for (const row of local) {
      if (row.parentId === null || open.has(localNode(row))) continue
      assert.ok(row.itemId !== null && bases.has(row.itemId), `${row.id} ${row.name} is in step with nothing`)
      assert.equal(row.hash, bases.get(row.itemId)!.hash, `the hash of ${row.name}`)
    }
    for (const itemId of bases.keys()) {
      if (open.has(`i:${itemId}`)) continue
      assert.ok(
        remote.some((row) => row.itemId === itemId),
        `the base of ${itemId} is left over`,
      )
    }
  }

  /** People are asked about nothing that is over. */
  async #checkAsked(): Promise<void> {
    const open = await this.#open()
    const asked = await this.world.store.conflicts(this.world.name, { state: 'open' })
    for (const { id, node } of asked)
      assert.equal(open.get(node)?.code, 'undecided', `conflict ${id} of ${node} is over`)
  }

  /** But what is left for a reason that is really one. */
  async #checkEqual(): Promise<void> {
    const { here, there } = this.world
    const open = await this.#open()
    const { local } = await this.#rows()
    const rowOf = new Map(local.filter((row) => !row.isMissing).map((row) => [localNode(row), row]))
    const left = { here: new Set<number>(), there: new Set<string>() }
    const asked = new Set(
      (await this.world.store.conflicts(this.world.name, { state: 'open' })).map(({ node }) => node),
    )
    for (const { node, because, code, waitsFor } of open.values()) {
      const row = rowOf.get(node)
      const thing = row && here.things.get(Number(row.ino))
      if (thing) left.here.add(thing.id)
      if (node.startsWith('i:')) left.there.add(node.slice(2))
      if (code === 'undecided')
        assert.ok(asked.has(node) || asked.has(waitsFor!), `nobody is asked of ${node}`)
      else if (because?.endsWith('is left alone')) assert.ok(open.has(waitsFor!), `${node} waits for nothing`)
      else if (because !== null && !because.includes('names')) this.#checkClash(node, because, thing)
      else if (because !== null)
        assert.ok(thing && isIllegal(thing.name), `${node} is left without a reason: ${because}`)
    }
    const isLeft = <Id>(
      one: { id: Id; parentId: Id | null },
      from: Set<Id>,
      all: ReadonlyMap<Id, { parentId: Id | null }>,
    ): boolean => {
      for (let at: Id | null = one.id; at !== null; at = all.get(at)?.parentId ?? null)
        if (from.has(at)) return true
      return false
    }
    const hereNow = here.list().filter((one) => !isLeft(one, left.here, here.things))
    const thereNow = there.list().filter((one) => !isLeft(one, left.there, there.things))
    const text = (path: string, { type: kind, content }: { type: string; content: string }): string =>
      `${path} ${kind} ${content}`
    assert.deepEqual(
      hereNow.map((one) => text(here.pathOf(one.id), one)).sort(),
      thereNow.map((one) => text(there.pathOf(one.id), one)).sort(),
      'the sides differ',
    )
  }

  #checkClash(node: NodeKey, because: string, thing: PaperFile | undefined): void {
    const { here, there } = this.world
    const isSameKey = (one: string) => (other: { name: string }) => nameKey(other.name) === nameKey(one)
    const item = there.things.get(node.slice(2))
    const clashHere = thing && here.children(thing.parentId!).filter(isSameKey(thing.name)).length > 1
    const clashThere = thing && because.includes('same name')
    assert.ok(
      clashHere || clashThere || (item && because.includes('not synced')),
      `${node} is left without a reason: ${because}`,
    )
  }

  #checkKept(): void {
    const { here, there } = this.world
    const kept = new Set([...here.bin, ...there.bin])
    for (const { content } of [...here.list('file'), ...there.list('file')]) kept.add(content)
    const lost = [...this.#saved].filter((content) => !kept.has(content) && !this.#given.has(content))
    assert.deepEqual(lost, [], 'contents that nobody deleted are nowhere')
  }

  /** None of those that nobody had the chance to move about, or to copy. */
  #checkCopies(): void {
    const { here } = this.world
    for (const { parentId, name, content } of here.list('file')) {
      if (!isConflictName(name) || this.#copies.has(content)) continue
      const original = here.child(parentId!, name.replace(/\.conflict-\d{8}-\d{6}(?:-\d+)?/, ''))
      const isSame = original?.type === 'file' && original.content === content
      assert.ok(!isSame, `${name} is a conflict copy of the same content`)
    }
  }
}

function row0(remote: readonly { itemId: string; cTag: string | null }[]): string | null {
  return remote.find(({ itemId }) => itemId === 'root')?.cTag ?? null
}

function pick<T>(list: readonly T[], at: number): T | undefined {
  return list.length === 0 ? undefined : list[at % list.length]
}

function otherCase(text: string): string {
  const first = text[0]!
  return (first === first.toLowerCase() ? first.toUpperCase() : first.toLowerCase()) + text.slice(1)
}

function isIllegal(text: string): boolean {
  return text.includes(':')
}

let worlds = 0

/** Throws with all that happened. */
export async function relive(store: FileStore, steps: readonly Step[]): Promise<void> {
  worlds += 1
  const world = await PaperWorld.open(store, `paper-${worlds}`)
  const history = new History(world)
  try {
    for (const one of steps) await history.step(one)
    await history.settle()
    await history.decideAll()
  } catch (thrown) {
    const cause = thrown instanceof Error ? thrown : new Error(String(thrown))
    throw new Error(
      `${cause.message}\n\nWhat happened:\n${world.said.join('\n')}\n\n${await sidesText(world)}`,
      { cause },
    )
  } finally {
    await world.close()
  }
}

async function sidesText({ here, there, openText, ...world }: PaperWorld): Promise<string> {
  const text = (path: string, one: { id: unknown; type: string; content: string }): string =>
    `  ${path} ${one.type} ${one.id} ${one.content}`
  return [
    'here:',
    ...here.list().map((one) => text(here.pathOf(one.id), one)),
    'there:',
    ...there.list().map((one) => text(there.pathOf(one.id), one)),
    'open:',
    await openText.call(world as PaperWorld),
  ].join('\n')
}
