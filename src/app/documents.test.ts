import assert from 'node:assert/strict'
import { systemClock } from '../base/clock.ts'
import { TidemarkError } from '../base/errors.ts'
import { createEngine } from '../engine/engine.ts'
import { TextExtractor } from '../search/extract/extractor.ts'
import { type IndexFixture, onEachDatabase } from '../search/index.suite.ts'
import { TRIES_MAX, WantedDocuments } from '../search/wanted.ts'
import { type DocumentOffer, defineIndexing, type OfferedDocument } from './documents.ts'

const UNIT = 'notes/of ann'
const OWNER = 'paper:ann'

type Note = { text: string; version: string; attachment?: string; title?: string }

/** An app whose documents are notes in memory. */
class Notes implements DocumentOffer {
  readonly source = 'notes'
  readonly notes = new Map<string, Note>()
  readonly reads: string[] = []
  stamps = 0
  isKept = true
  failing = new Set<string>()
  /** Called while a note is read. */
  onRead: (id: string) => Promise<void> = async () => {}

  async owner(unit: string): Promise<{ principal: string } | 'unknown'> {
    return unit === UNIT && this.isKept ? { principal: OWNER } : 'unknown'
  }

  async stamp(): Promise<string> {
    return String(this.stamps)
  }

  async all(_unit: string, after: string | null) {
    const ids = [...this.notes.keys()].sort().filter((id) => after === null || id > after)
    const page = ids.slice(0, 2)
    return {
      ids: page.map((id) => ({ id, version: this.notes.get(id)!.version })),
      next: ids.length > 2 ? page.at(-1)! : null,
    }
  }

  async has(_unit: string, ids: readonly string[]): Promise<Set<string>> {
    return new Set(ids.filter((id) => this.notes.has(id)))
  }

  async read(_unit: string, id: string): Promise<OfferedDocument[] | undefined> {
    this.reads.push(id)
    await this.onRead(id)
    if (this.failing.has(id)) throw new TidemarkError('its shelf is locked', { kind: 'transient' })
    const note = this.notes.get(id)
    if (!note) return undefined
    const about: Omit<OfferedDocument, 'body' | 'title'> = {
      type: 'text',
      mimeType: 'text/plain',
      owner: 'ann',
      people: [],
      folders: [],
      url: '',
      createdAtMs: null,
      modifiedAtMs: null,
      sizeBytes: null,
      version: note.version,
    }
    const whole: OfferedDocument = {
      ...about,
      title: note.title ?? `note ${id}`,
      body: { hash: `text:${note.text}`, text: note.text },
    }
    if (note.attachment === undefined) return [whole]
    const bytes = new TextEncoder().encode(note.attachment)
    const body = {
      hash: `text:${note.attachment}`,
      bytes: async () => bytes,
      name: 'a.txt',
      mimeType: 'text/plain',
    }
    return [whole, { ...about, title: 'a.txt', part: '0', body }]
  }
}

class World {
  readonly notes = new Notes()
  readonly fixture: IndexFixture
  readonly wanted: WantedDocuments
  readonly indexing: ReturnType<typeof defineIndexing>
  readonly #engine: Awaited<ReturnType<typeof createEngine>>
  readonly #extractor: TextExtractor

  private constructor(
    fixture: IndexFixture,
    wanted: WantedDocuments,
    made: Pick<World, 'notes' | 'indexing'> & Made,
  ) {
    this.fixture = fixture
    this.wanted = wanted
    this.notes = made.notes
    this.indexing = made.indexing
    this.#engine = made.engine
    this.#extractor = made.extractor
  }

  static async start(fixture: IndexFixture): Promise<World> {
    const { ledger } = fixture.site
    const wanted = await WantedDocuments.open(ledger)
    const notes = new Notes()
    const extractor = new TextExtractor({ clock: systemClock })
    const search = { open: async () => fixture.search, extractor: async () => extractor }
    const indexing = defineIndexing({ offer: notes, wanted, search })
    const engine = await createEngine({ ledger, jobs: [indexing.kind] })
    await engine.start()
    return new World(fixture, wanted, { notes, indexing, engine, extractor })
  }

  want(ids: readonly string[]): Promise<void> {
    return this.fixture.site.ledger.transaction((tx) => this.indexing.want(tx, UNIT, ids))
  }

  async index(): Promise<void> {
    await this.#engine.enqueue(this.indexing.kind, { unit: UNIT })
    await this.#engine.drained()
  }

  async compare(): Promise<void> {
    await this.#engine.enqueue(this.indexing.kind, { unit: UNIT, compare: true })
    await this.#engine.drained()
  }

  async found(text: string): Promise<string[]> {
    const refs = await this.fixture.refs(text, { as: OWNER })
    return refs.map((ref) => ref.slice(`${encodeURIComponent(UNIT)}/`.length)).sort()
  }

  async close(): Promise<void> {
    await this.#engine.stop()
    await this.#extractor.close()
  }
}

type Made = { engine: Awaited<ReturnType<typeof createEngine>>; extractor: TextExtractor }

onEachDatabase('documents of an app', (withIndex) => {
  const withNotes = (title: string, run: (world: World) => Promise<void>): void =>
    withIndex(title, async (index) => {
      const world = await World.start(index)
      try {
        await run(world)
      } finally {
        await world.close()
      }
    })

  withNotes('what there was before is read once, and later only what has changed', async (world) => {
    const { notes } = world
    for (const id of ['a', 'b', 'c', 'd', 'e'])
      notes.notes.set(id, { text: `plain ${id} words`, version: '1' })
    await world.compare()
    assert.deepEqual(await world.found('words'), ['a', 'b', 'c', 'd', 'e'])
    assert.deepEqual(notes.reads.toSorted(), ['a', 'b', 'c', 'd', 'e'])
    notes.reads.length = 0
    notes.notes.set('c', { text: 'other words', version: '2' })
    notes.notes.delete('d')
    notes.stamps += 1
    await world.compare()
    assert.deepEqual(await world.found('words'), ['a', 'b', 'c', 'e'])
    assert.deepEqual(await world.found('other'), ['c'])
    assert.deepEqual(notes.reads.toSorted(), ['c', 'd'])
    notes.reads.length = 0
    await world.compare()
    assert.deepEqual(notes.reads, [], 'nothing has changed since, by the stamp')
  })

  withNotes('what is wanted while it is read is read again', async (world) => {
    const { notes } = world
    notes.notes.set('a', { text: 'old words', version: '1' })
    await world.compare()
    let changes = 0
    notes.onRead = async (id) => {
      if (id !== 'a' || changes > 0) return
      changes += 1
      await world.want(['a'])
    }
    await world.want(['a'])
    await world.index()
    assert.deepEqual(notes.reads, ['a', 'a', 'a'])
  })

  withNotes('only the owner sees them, and their attachments go with them', async (world) => {
    const { notes, fixture } = world
    notes.notes.set('a', { text: 'the letter', version: '1', attachment: 'an enclosed invoice' })
    await world.compare()
    assert.deepEqual(await world.found('invoice'), ['a/0'])
    assert.deepEqual(await fixture.refs('invoice', { as: 'paper:bob' }), [])
    notes.notes.delete('a')
    await world.want(['a'])
    await world.index()
    assert.deepEqual(await world.found('invoice OR letter'), [])
    for (const table of ['search_documents', 'search_contents', 'search_chunks', 'search_access'])
      assert.equal(await fixture.count(table), 0, table)
  })

  withNotes(
    'one that cannot be read costs the others nothing, and is given up until it is wanted again',
    async (world) => {
      const { notes, wanted } = world
      for (const id of ['a', 'b']) notes.notes.set(id, { text: `words ${id}`, version: '1' })
      notes.failing.add('a')
      await world.compare()
      assert.deepEqual(await world.found('words'), ['b'])
      assert.equal(notes.reads.filter((id) => id === 'a').length, TRIES_MAX)
      assert.deepEqual(await wanted.counts({ source: 'notes', unit: UNIT }), { waiting: 0, failed: 1 })
      notes.failing.clear()
      await world.want(['a'])
      await world.index()
      assert.deepEqual(await world.found('words'), ['a', 'b'])
      assert.deepEqual(await wanted.counts({ source: 'notes', unit: UNIT }), { waiting: 0, failed: 0 })
    },
  )

  withNotes(
    'what is gone and has come elsewhere with the same bytes and name blocks nothing',
    async (world) => {
      const { notes } = world
      const note = { text: 'moved words', version: '1', title: 'one name' }
      notes.notes.set('a', note)
      await world.compare()
      notes.notes.delete('a')
      notes.notes.set('b', note)
      // Another one that takes its new name while a third takes the old content.
      notes.notes.set('c', { text: 'plain words', version: '1' })
      await world.want(['a', 'b', 'c'])
      await world.index()
      assert.deepEqual(await world.found('words'), ['b', 'c'])
      assert.deepEqual(notes.reads.filter((id) => id === 'c').length, 1)
      notes.notes.set('b', { ...note, title: 'another name', version: '2' })
      notes.notes.set('d', note)
      await world.want(['b', 'd'])
      await world.index()
      assert.deepEqual(await world.found('moved'), ['b', 'd'])
      assert.deepEqual(await world.wanted.counts({ source: 'notes', unit: UNIT }), { waiting: 0, failed: 0 })
    },
  )

  withNotes('what was read before somebody else saw to a newer one is not written', async (world) => {
    const { notes, wanted, fixture } = world
    const of = { source: 'notes', unit: UNIT }
    notes.notes.set('a', { text: 'old words', version: '1' })
    notes.onRead = async (id) => {
      notes.onRead = async () => {}
      // While it is read it goes, and another process sees to that.
      await world.want([id])
      const [newer] = await wanted.next(of, 1)
      await fixture.site.ledger.transaction((tx) => wanted.done(tx, of, newer!))
    }
    await world.want(['a'])
    await world.index()
    assert.deepEqual(await world.found('old'), [])
  })

  withNotes('of a unit that is kept up to date no more nothing is left in the index', async (world) => {
    const { notes, fixture, wanted } = world
    for (let n = 0; n < 3; n++) {
      notes.notes.set(`n${n}`, { text: `words ${n}`, version: '1', attachment: `enclosed ${n}` })
    }
    await world.compare()
    assert.equal((await world.found('words OR enclosed')).length, 6)
    notes.isKept = false
    await world.want(['n0'])
    await world.index()
    for (const table of ['search_documents', 'search_contents', 'search_access'])
      assert.equal(await fixture.count(table), 0, table)
    assert.deepEqual(await wanted.counts({ source: 'notes', unit: UNIT }), { waiting: 0, failed: 0 })
    notes.isKept = true
    await world.compare()
    assert.equal((await world.found('words OR enclosed')).length, 6, 'all of it is read when it comes back')
  })

  withNotes('what was wanted by a transaction that is undone is not wanted', async (world) => {
    const undone = new Error('undone')
    await assert.rejects(
      world.fixture.site.ledger.transaction(async (tx) => {
        await world.indexing.want(tx, UNIT, ['a'])
        throw undone
      }),
    )
    assert.deepEqual(await world.wanted.counts({ source: 'notes', unit: UNIT }), { waiting: 0, failed: 0 })
  })
})
