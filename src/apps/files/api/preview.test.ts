import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { createRoot, type Root } from '../local/root.ts'
import { DOT_PNG } from './files-api.suite.ts'
import { beginningHere, decodedText, imageTypeOf } from './preview.ts'
import { TransferRates } from './transfers.ts'

describe('what can be shown of a file', () => {
  test('a picture is told by its bytes', () => {
    assert.equal(imageTypeOf(DOT_PNG), 'image/png')
    assert.equal(imageTypeOf(Buffer.from('ffd8ffe000', 'hex')), 'image/jpeg')
    assert.equal(imageTypeOf(Buffer.from('GIF89a…')), 'image/gif')
    assert.equal(imageTypeOf(Buffer.from('RIFF0000WEBPVP8 ')), 'image/webp')
    for (const text of ['<svg onload=alert(1)>', '<html>', 'RIFF0000WAVE', '', 'GIF', '%PDF-1.7']) {
      assert.equal(imageTypeOf(Buffer.from(text)), undefined, text)
    }
  })

  test('text is what is valid and has no other control characters; its cut end is left out', () => {
    assert.equal(decodedText(Buffer.from('tab\tline\r\nä🎉')), 'tab\tline\r\nä🎉')
    assert.equal(decodedText(Buffer.from('aä').subarray(0, 2)), 'a')
    assert.equal(decodedText(Buffer.from([0x61, 0x00])), undefined)
    assert.equal(decodedText(Buffer.from([0xff, 0xfe, 0x61, 0x00])), undefined)
    assert.equal(decodedText(Buffer.alloc(0)), '')
  })

  describe('in the folder', () => {
    let folder: string
    let root: Root
    before(async () => {
      folder = realpathSync(mkdtempSync(join(tmpdir(), 'tidemark-preview-')))
      root = await createRoot(join(folder, 'root'), { markerId: 'm', drive: 'd', createdAt: '' })
      writeFileSync(join(folder, 'secret.txt'), 'secret')
      writeFileSync(join(root.path, 'a.txt'), 'inside')
      mkdirSync(join(root.path, 'sub'))
      symlinkSync(join(folder, 'secret.txt'), join(root.path, 'link.txt'))
      symlinkSync(folder, join(root.path, 'up'))
    })
    after(() => rmSync(folder, { recursive: true, force: true }))

    test('only its beginning is read', () => {
      const found = beginningHere(root, ['a.txt'], 3)
      assert.deepEqual([found?.bytes.toString(), found?.size], ['ins', 6])
      assert.equal(beginningHere(root, ['none.txt'], 3), undefined)
      assert.equal(beginningHere(root, ['none', 'a.txt'], 3), undefined)
      assert.equal(beginningHere(root, ['sub'], 3), undefined)
    })

    test('no link and no name leads out of it', () => {
      assert.throws(() => beginningHere(root, ['link.txt'], 100))
      assert.throws(() => beginningHere(root, ['up', 'secret.txt'], 100))
      assert.throws(() => beginningHere(root, ['..', 'secret.txt'], 100))
      assert.throws(() => beginningHere(root, ['.tidemark', 'root.json'], 100))
    })
  })
})

describe('the pace of transfers', () => {
  test('is measured from look to look, and forgotten with the transfer', () => {
    const rates = new TransferRates()
    const pace = (doneBytes: number, atMs: number) => rates.measure([{ key: 'a', doneBytes }], atMs).get('a')
    assert.equal(pace(0, 0), null)
    assert.equal(pace(500, 100), null)
    assert.equal(pace(1_000, 1_000), 1_000)
    assert.equal(Math.round(pace(3_000, 2_000)!), 1_400)
    assert.equal(pace(10, 3_000), null)
    rates.measure([], 4_000)
    assert.equal(pace(5_000, 5_000), null)
  })
})
