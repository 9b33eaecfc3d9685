import assert from 'node:assert/strict'
import { test } from 'node:test'
import { defineIndexing } from '../../app/documents.ts'
import { systemClock } from '../../base/clock.ts'
import { createEngine } from '../../engine/engine.ts'
import { TextExtractor } from '../../search/extract/extractor.ts'
import { openSearch } from '../../search/search.ts'
import { WantedDocuments } from '../../search/wanted.ts'
import { filesOffer } from './documents.ts'
import { ACCOUNT, type FileWorld, PAIR, withFileWorld } from './sync.suite.ts'

/** The index of a world's ledger, and how to bring it up to date. */
async function withIndexed(run: (world: FileWorld, parts: Parts) => Promise<void>): Promise<void> {
  await withFileWorld({}, async (world) => {
    const { ledger } = world.engine
    const search = openSearch({ ledger })
    const extractor = new TextExtractor({ clock: systemClock })
    const offer = filesOffer({ files: world.files, ledger })
    const wanted = await WantedDocuments.open(ledger)
    const handle = { open: async () => search, extractor: async () => extractor }
    const { kind } = defineIndexing({ offer, wanted, search: handle })
    const engine = await createEngine({ ledger, jobs: [kind] })
    await engine.start()
    const index = async (): Promise<void> => {
      await engine.enqueue(kind, { unit: PAIR, compare: true })
      await engine.drained()
    }
    const find = async (text: string): Promise<string[]> => {
      const { hits } = await search.search({
        text,
        reader: { principals: [`onedrive:${ACCOUNT}`] },
        mode: 'words',
        limit: 20,
        nowMs: systemClock.now(),
        signal: new AbortController().signal,
      })
      return hits
        .map(({ title, folders }) => [...folders, title.map((part) => part.text).join('')].join('/'))
        .sort()
    }
    try {
      await run(world, { index, find })
    } finally {
      await engine.stop()
      await extractor.close()
      await search.close()
    }
  })
}

type Parts = { index: () => Promise<void>; find: (text: string) => Promise<string[]> }

test('files in step are found as they are now: edited, moved, deleted', () =>
  withIndexed(async (world, { index, find }) => {
    world.write('plans/harbour.md', '# Quay\n\nThe crane stands on the northern quay.')
    world.write('plans/list.csv', 'name,berth\nAurora,7\n')
    world.write('copy.md', '# Quay\n\nThe crane stands on the northern quay.')
    await world.sync()
    await index()
    assert.deepEqual(await find('crane northern'), [`${PAIR}/copy.md`, `${PAIR}/plans/harbour.md`])
    assert.deepEqual(await find('aurora type:sheet'), [`${PAIR}/plans/list.csv`])

    world.write('plans/harbour.md', '# Quay\n\nThe crane was moved to the southern mole.')
    world.move('plans/list.csv', 'berths.csv')
    world.remove('copy.md')
    await world.sync()
    await index()
    assert.deepEqual(await find('northern'), [])
    assert.deepEqual(await find('southern mole'), [`${PAIR}/plans/harbour.md`])
    assert.deepEqual(await find('aurora'), [`${PAIR}/berths.csv`])

    // Everything below a folder that has another name lies elsewhere.
    world.move('plans', 'attic')
    await world.sync()
    await index()
    assert.deepEqual(await find('southern in:plans'), [])
    assert.deepEqual(await find('southern'), [`${PAIR}/attic/harbour.md`])
  }))

test('a link that takes the place of a file is not followed into the index', () =>
  withIndexed(async (world, { index, find }) => {
    world.write('a.txt', 'harmless words')
    await world.sync()
    const { symlinkSync, rmSync, writeFileSync } = await import('node:fs')
    const secret = `${world.root}-secret.txt`
    writeFileSync(secret, 'harmless words')
    try {
      world.remove('a.txt')
      symlinkSync(secret, world.path('a.txt'))
      await index()
      assert.deepEqual(await find('harmless'), [])
    } finally {
      rmSync(secret)
    }
  }))

test('files that have the same QuickXorHash are not taken for one another', () =>
  withIndexed(async (world, { index, find }) => {
    // It is the same for contents in which records of 160 bytes change places.
    const first = `${'at the quay '.repeat(13)}ore `
    const second = `north ${'of the mole '.repeat(12)}old crane `
    assert.deepEqual([first.length, second.length], [160, 160])
    for (const [path, text] of [
      ['here/list.txt', first + second],
      ['there/list.txt', second + first],
    ] as const) {
      world.write(path, text)
      await world.sync()
      // As of files that were agreed on before anybody kept their SHA-256.
      await world.engine.ledger.transaction((tx) => tx.run('UPDATE file_base SET sha256 = NULL'))
      await index()
    }
    assert.deepEqual(await find('"ore north"'), [`${PAIR}/here/list.txt`])
    assert.deepEqual(await find('"old crane at"'), [`${PAIR}/there/list.txt`])
  }))
