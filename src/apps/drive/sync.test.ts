import assert from 'node:assert/strict'
import { afterEach, describe, test } from 'node:test'
import { TidemarkError } from '../../base/errors.ts'
import * as hostile from '../../sim/documents/hostile.ts'
import { png } from '../../sim/documents/plain.ts'
import { SERVICE, streamOf } from './account.ts'
import {
  ANN,
  BOB,
  CAT,
  type DriveTestWorld,
  type DriveWorldOptions,
  startDriveWorld,
} from './drive-world.suite.ts'
import { moveToken } from './store/feeds.ts'

const DOC = 'application/vnd.google-apps.document'

let world: DriveTestWorld
afterEach(() => world.close())

async function start(options: DriveWorldOptions = {}): Promise<DriveTestWorld['world']> {
  world = await startDriveWorld(options)
  return world.world
}

const reader = (email: string) => ({ type: 'user', role: 'reader', email }) as const

describe('a first sync', () => {
  test('indexes what each person sees, and nothing else', async () => {
    const drive = await start()
    const own = drive.create({
      name: 'Plan.txt',
      by: ANN,
      content: 'The harvest of apples begins in autumn.',
    })
    const shared = drive.create({ name: 'Menu.txt', by: ANN, content: 'Soup with leeks for everybody.' })
    drive.share(shared.id, reader(BOB))
    await world.sync()
    assert.deepEqual(await world.seen(ANN), [own.id, shared.id].sort())
    assert.deepEqual(await world.seen(BOB), [shared.id])
    assert.deepEqual(await world.found(BOB, 'leeks'), ['Menu.txt'])
    assert.deepEqual(await world.found(BOB, 'apples'), [])
    const { listed, indexed, status } = await world.status(ANN)
    assert.deepEqual([listed, indexed, status], [2, 2, 'completed'])
  })

  test('what happens while it lists is found: its change token was taken before', async () => {
    const drive = await start({ connected: [ANN] })
    drive.create({ name: 'Old.txt', by: ANN, content: 'old' })
    const { client } = await world.kinds.accounts.get(ANN)
    const list = client.list.bind(client)
    let isMade = false
    client.list = async (page) => {
      const answer = await list(page)
      if (!isMade) drive.create({ name: 'Meanwhile.txt', by: ANN, content: 'new' })
      isMade = true
      return answer
    }
    await world.sync()
    assert.deepEqual(await world.found(ANN, 'new'), ['Meanwhile.txt'])
  })

  test('one forbidden file stops nothing: it is found by its name, with the reason', async () => {
    const drive = await start({ connected: [ANN] })
    const secret = drive.create({ name: 'Secret recipe.txt', by: ANN, content: 'cannot be had' })
    drive.create({ name: 'Other.txt', by: ANN, content: 'can be had' })
    world.drive.refuse(secret.id, { reason: 'cannotDownloadFile' })
    await world.sync()
    assert.deepEqual(await world.found(ANN, 'recipe'), ['Secret recipe.txt'])
    assert.deepEqual(await world.found(ANN, 'had'), ['Other.txt'])
    const { listed, indexed, skippedBy } = await world.status(ANN)
    assert.deepEqual([listed, indexed], [2, 1])
    assert.deepEqual(skippedBy, [{ code: 'cannotDownloadFile', count: 1 }])
  })

  test('an export that is too large, a picture and a shortcut are skipped with their reasons', async () => {
    const drive = await start({ connected: [ANN] })
    const long = drive.create({ name: 'Long', by: ANN, mimeType: DOC, content: 'words' })
    world.drive.refuse(long.id, { reason: 'exportSizeLimitExceeded' })
    drive.create({ name: 'Photo.png', by: ANN, mimeType: 'image/png', content: 'png' })
    drive.create({ name: 'Way', by: ANN, mimeType: 'application/vnd.google-apps.shortcut', target: long.id })
    await world.sync()
    const codes = (await world.status(ANN)).skippedBy.map(({ code }) => code).sort()
    assert.deepEqual(codes, ['exportSizeLimitExceeded', 'shortcut', 'unsupported-type'])
    assert.deepEqual(await world.found(ANN, 'photo'), ['Photo.png'])
  })

  test('hostile documents are listed as skipped, each with its reason, and the others are read', async () => {
    const drive = await start({ connected: [ANN] })
    const documents: Record<string, [bytes: Uint8Array, code: string]> = {
      'bomb.docx': [hostile.bombDocx({ inflatedMb: 1_000 }), 'bomb'],
      'deep.html': [hostile.deepHtml({ depth: 100_000 }), 'too-deep'],
      'loops.pdf': [hostile.loopingPdf('pages'), 'damaged'],
      'picture.docx': [png(), 'unsupported-type'],
      'password.pdf': [hostile.encryptedPdf(), 'encrypted'],
    }
    for (const [name, [content]] of Object.entries(documents)) drive.create({ name, by: ANN, content })
    drive.create({ name: 'table.xlsx', by: ANN, content: hostile.hugeXlsx({ rows: 20_000 }) })
    drive.create({ name: 'Plan.txt', by: ANN, content: 'apples' })
    await world.sync()
    const page = { accounts: [ANN], code: undefined, after: '', limit: 10 }
    const skipped = await world.tables.skipped(page)
    assert.deepEqual(
      Object.fromEntries(skipped.map(({ name, code }) => [name, code])),
      Object.fromEntries(Object.entries(documents).map(([name, [, code]]) => [name, code])),
    )
    assert.ok(skipped.every(({ reason }) => (reason?.length ?? 0) > 10))
    const { listed, indexed, failed } = await world.status(ANN)
    assert.deepEqual([listed, indexed, failed], [7, 2, 0])
    assert.deepEqual(await world.found(ANN, 'bomb OR apples'), ['Plan.txt', 'bomb.docx'])
  })

  test('every sheet of a Google sheet is read, and the first where all are too large to be exported', async () => {
    const drive = await start({ connected: [ANN] })
    const SHEET = 'application/vnd.google-apps.spreadsheet'
    const content = 'name,berth\nAurora,7\n\n---\n\nname,cargo\nBorealis,tea'
    drive.create({ name: 'Harbour', by: ANN, mimeType: SHEET, content })
    const large = drive.create({ name: 'Large', by: ANN, mimeType: SHEET, content: `${content} and coffee` })
    const { client } = await world.kinds.accounts.get(ANN)
    const exported = client.export.bind(client)
    client.export = async (id, type, options) => {
      if (id !== large.id || type === 'text/csv') return exported(id, type, options)
      throw new TidemarkError('too large', { kind: 'permanent', code: 'exportSizeLimitExceeded' })
    }
    await world.sync()
    assert.deepEqual(await world.found(ANN, 'aurora'), ['Harbour', 'Large'])
    assert.deepEqual(await world.found(ANN, 'borealis'), ['Harbour'])
    assert.deepEqual((await world.status(ANN)).skippedBy, [])
  })

  test('a shortcut is found by its name, and opens what it leads to', async () => {
    const drive = await start({ connected: [ANN] })
    const plan = drive.create({ name: 'Plan.txt', by: ANN, content: 'apples' })
    const type = 'application/vnd.google-apps.shortcut'
    const way = drive.create({ name: 'My favourite', by: ANN, mimeType: type, target: plan.id })
    await world.sync()
    assert.deepEqual(await world.found(ANN, 'favourite'), ['My favourite'])
    assert.deepEqual(await world.found(ANN, 'apples'), ['Plan.txt'])
    const row = await world.tables.file(way.id)
    assert.equal(row?.url, `https://drive.google.com/open?id=${plan.id}`)
  })

  test('a file that two drives of an account list is one, and the books say so', async () => {
    const drive = await start({
      drive: {
        drives: [
          {
            name: 'Legal',
            members: [
              { email: ANN, role: 'organizer' },
              { email: BOB, role: 'reader' },
            ],
          },
        ],
      },
    })
    const root = [...drive.items.values()].find(({ isRoot, driveId }) => isRoot && driveId !== undefined)!
    const file = drive.create({ name: 'Brief.txt', by: ANN, content: 'brief', parent: root.id })
    drive.share(file.id, reader(BOB))
    await world.sync()
    const { listed, listedAgain, feeds } = await world.status(BOB)
    assert.equal(
      feeds.reduce((sum, feed) => sum + feed.listed, 0),
      listed + listedAgain,
    )
    assert.deepEqual([listed, listedAgain], [1, 1])
  })

  test('a file that fails again and again is isolated, and the status still adds up', async () => {
    const drive = await start({ connected: [ANN] })
    const broken = drive.create({ name: 'Broken.txt', by: ANN, content: 'never comes' })
    drive.create({ name: 'Whole.txt', by: ANN, content: 'comes' })
    world.drive.refuse(broken.id, { status: 503 })
    await world.sync()
    const { listed, indexed, failed, onTheirWay } = await world.status(ANN)
    assert.deepEqual([listed, indexed, failed, onTheirWay], [2, 1, 1, 0])
    assert.equal((await world.ledger.badItems({})).length, 1)
    world.drive.allow(broken.id)
    await world.ledger.retryBad({})
    await world.engine.drained()
    assert.equal((await world.status(ANN)).failed, 0)
    assert.deepEqual(await world.found(ANN, 'comes'), ['Broken.txt', 'Whole.txt'])
  })
})

describe('a document that several see', () => {
  test('is fetched once, and what is the same elsewhere is not fetched at all', async () => {
    const drive = await start({ users: [ANN, BOB, CAT] })
    const one = drive.create({ name: 'Plan.txt', by: ANN, content: 'the same words' })
    drive.share(one.id, reader(BOB))
    drive.share(one.id, reader(CAT))
    await world.sync()
    const copy = drive.create({ name: 'Plan.txt', by: BOB, content: 'the same words' })
    await world.sync()
    assert.equal(world.drive.counts.fetches(one.id), 1)
    assert.equal(world.drive.counts.fetches(copy.id), 0)
    assert.deepEqual(await world.found(BOB, 'words'), ['Plan.txt'])
  })

  test('is never that of another with the same MD5: of that anybody makes two', async () => {
    const drive = await start()
    const secret = drive.create({ name: 'Plan.txt', by: ANN, content: 'apples for the buyer' })
    const crafted = drive.create({ name: 'Plan.txt', by: BOB, content: 'pears and nothing else' })
    const { md5 } = secret.content!.digests
    Object.assign(crafted.content!.digests, { md5 })
    // As if its bytes had it, which takes some minutes to make.
    const { client } = await world.kinds.accounts.get(BOB)
    const download = client.download.bind(client)
    client.download = (id, { md5: _listed, ...options }) => download(id, options)
    await world.sync(ANN)
    await world.sync(BOB)
    assert.deepEqual(await world.found(BOB, 'pears'), ['Plan.txt'])
    assert.deepEqual(await world.found(BOB, 'apples'), [])
  })

  test('is fetched by who may, where another may not download it', async () => {
    const drive = await start()
    const one = drive.create({ name: 'Guarded.txt', by: ANN, content: 'for owners only' })
    drive.share(one.id, reader(BOB))
    one.copyNeedsWriter = true
    await world.sync(BOB)
    assert.equal((await world.status(BOB)).skipped, 1)
    await world.sync()
    assert.deepEqual(await world.found(BOB, 'owners'), ['Guarded.txt'])
  })

  test('does not tell a reader the name of a folder that only its owner sees', async () => {
    const drive = await start()
    const folder = drive.createFolder({ name: 'Layoffs', by: ANN })
    const file = drive.create({ name: 'List.txt', by: ANN, parent: folder.id, content: 'names' })
    await world.sync()
    assert.deepEqual(await world.found(ANN, 'in:Layoffs'), ['List.txt'])
    drive.share(file.id, reader(BOB))
    await world.sync()
    assert.deepEqual(await world.found(BOB, 'names'), ['List.txt'])
    assert.deepEqual(await world.found(BOB, 'in:Layoffs'), [])
  })

  test('does not tell the name of a folder that a reader has lost, however deep in it the document lies', async () => {
    const drive = await start()
    const outer = drive.createFolder({ name: 'Layoffs', by: ANN })
    const inner = drive.createFolder({ name: 'Lists', by: ANN, parent: outer.id })
    drive.create({ name: 'List.txt', by: ANN, parent: inner.id, content: 'names' })
    drive.share(outer.id, reader(BOB))
    drive.share(inner.id, reader(BOB))
    await world.sync()
    assert.deepEqual(await world.found(BOB, 'in:Layoffs'), ['List.txt'])
    drive.unshare(outer.id, BOB)
    await world.sync()
    assert.deepEqual(await world.found(BOB, 'in:Lists'), ['List.txt'])
    assert.deepEqual(await world.found(BOB, 'in:Layoffs'), [])
  })

  test('goes for who loses it only, and for good with the last', async () => {
    const drive = await start()
    const one = drive.create({ name: 'Shared.txt', by: ANN, content: 'words' })
    drive.share(one.id, reader(BOB))
    await world.sync()
    drive.unshare(one.id, BOB)
    await world.sync()
    assert.deepEqual([await world.seen(ANN), await world.seen(BOB)], [[one.id], []])
    const { revocations } = await world.status(BOB)
    assert.equal(revocations.timed, 1)
    drive.trash(one.id)
    await world.sync()
    assert.deepEqual(await world.seen(ANN), [])
    assert.equal(await world.tables.file(one.id), undefined)
  })
})

describe('comments on a Google Doc', () => {
  test('are found by nobody, though its owner, who exports it for all, is given them', async () => {
    const drive = await start({ users: [ANN, BOB, CAT] })
    const { id } = drive.create({ name: 'Offer', by: ANN, mimeType: DOC, content: 'The offer stands.' })
    drive.comment(id, 'Much too high, says the board', ANN)
    drive.share(id, reader(BOB))
    drive.share(id, { type: 'user', role: 'commenter', email: CAT })
    const { client } = await world.kinds.accounts.get(ANN)
    const page = await client.export(id, 'text/html', { bytesMax: 1e6 })
    assert.match(Buffer.from(page).toString(), /says the board/)
    const bobs = await (await world.kinds.accounts.get(BOB)).client.export(id, 'text/html', { bytesMax: 1e6 })
    assert.doesNotMatch(Buffer.from(bobs).toString(), /says the board/)
    await world.sync()
    for (const person of [ANN, BOB, CAT]) {
      assert.deepEqual(await world.found(person, 'offer stands'), ['Offer'])
      assert.deepEqual(await world.found(person, 'board'), [])
      const principals = [streamOf(person)]
      const found = await world.search.find({ source: SERVICE, ref: id }, { principals })
      const read = await world.search.read(found!, { principals })
      assert.deepEqual(
        read?.chunks.map(({ text }) => text),
        ['The offer stands.'],
      )
      assert.deepEqual(await world.search.suggest('boar', { principals }, 5), [])
    }
    // A comment that is added later is no new version either.
    drive.comment(id, 'Agreed by the treasurer', CAT)
    await world.relist()
    assert.deepEqual(await world.found(BOB, 'treasurer'), [])
  })
})

describe('what changes do not tell', () => {
  test('a folder that is shared later is found by its fingerprint, with what is in it', async () => {
    const drive = await start()
    const folder = drive.createFolder({ name: 'Project', by: ANN })
    const file = drive.create({ name: 'Deep.txt', by: ANN, parent: folder.id, content: 'deep' })
    await world.sync()
    drive.share(folder.id, reader(BOB))
    await world.sync()
    assert.deepEqual(await world.seen(BOB), [file.id])
    drive.unshare(folder.id, BOB)
    await world.sync()
    assert.deepEqual(await world.seen(BOB), [])
  })

  test('a limited folder keeps its documents from the members of its drive', async () => {
    const drive = await start()
    const legal = drive.addDrive({
      name: 'Legal',
      members: [
        { email: ANN, role: 'organizer' },
        { email: BOB, role: 'reader' },
      ],
    })
    const folder = drive.createFolder({ name: 'Board', parent: legal.id, by: ANN })
    const file = drive.create({ name: 'Minutes.txt', parent: folder.id, by: ANN, content: 'minutes' })
    await world.sync()
    assert.deepEqual(await world.seen(BOB), [file.id])
    drive.limit(folder.id, true)
    await world.sync()
    assert.deepEqual([await world.seen(ANN), await world.seen(BOB)], [[file.id], []])
  })

  test('a drive that is joined is listed, and one that is left is forgotten', async () => {
    const drive = await start()
    const legal = drive.addDrive({ name: 'Legal', members: [{ email: ANN, role: 'organizer' }] })
    const file = drive.create({ name: 'Contract.txt', parent: legal.id, by: ANN, content: 'contract' })
    await world.sync()
    assert.deepEqual(await world.seen(BOB), [])
    drive.share(legal.id, reader(BOB))
    await world.sync()
    assert.deepEqual(await world.seen(BOB), [file.id])
    drive.unshare(legal.id, BOB)
    await world.sync()
    assert.deepEqual(await world.seen(BOB), [])
  })

  test('a drive that cannot be reached prunes nothing', async () => {
    const drive = await start({ connected: [ANN] })
    const legal = drive.addDrive({ name: 'Legal', members: [{ email: ANN, role: 'organizer' }] })
    const file = drive.create({ name: 'Contract.txt', parent: legal.id, by: ANN, content: 'contract' })
    await world.sync()
    world.drive.refuse(legal.id, { status: 403, reason: 'teamDriveMembershipRequired' })
    await world.relist()
    assert.deepEqual(await world.seen(ANN), [file.id])
    const legalFeed = (await world.status(ANN)).feeds.find(({ name }) => name === 'Legal')
    assert.ok(legalFeed?.problem)
    world.drive.allow(legal.id)
    await world.sync()
    assert.equal((await world.status(ANN)).feeds.find(({ name }) => name === 'Legal')?.state, 'following')
  })

  test('a listing that Google says is incomplete sweeps nothing', async () => {
    const drive = await start()
    for (let n = 0; n < 9; n++) {
      const file = drive.create({ name: `Open ${n}.txt`, by: ANN, content: `open ${n}` })
      drive.share(file.id, { type: 'domain', role: 'reader', domain: 'example.com', isDiscoverable: true })
    }
    await world.sync()
    assert.equal((await world.seen(BOB)).length, 9)
    world.drive.listing.isIncomplete = true
    await world.relist()
    assert.equal((await world.seen(BOB)).length, 9)
    assert.ok((await world.status(BOB)).feeds.some(({ isIncomplete }) => isIncomplete))
  })

  test('a file that is known by its link only is not found', async () => {
    const drive = await start()
    const file = drive.create({ name: 'Linked.txt', by: ANN, content: 'linked' })
    drive.share(file.id, { type: 'anyone', role: 'reader', isDiscoverable: false })
    drive.share(file.id, reader(BOB))
    await world.sync()
    assert.deepEqual(await world.seen(BOB), [file.id])
    drive.unshare(file.id, BOB)
    await world.sync()
    assert.deepEqual(await world.seen(BOB), [])
  })

  test('a change token that is not known any more leads to a new listing', async () => {
    const drive = await start({ connected: [ANN] })
    drive.create({ name: 'One.txt', by: ANN, content: 'one' })
    await world.sync()
    await world.ledger.transaction((tx) => moveToken(tx, { account: ANN, drive: '' }, '999999999999'))
    const two = drive.create({ name: 'Two.txt', by: ANN, content: 'two' })
    await world.sync()
    assert.ok((await world.seen(ANN)).includes(two.id))
  })
})
