import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { htmlHeightPx } from './html-height.ts'

const WIDE = 1_000
const LINE_PX = 22.5

describe('the height of a formatted message', () => {
  test('grows by its lines, and narrower lines are more', () => {
    const one = htmlHeightPx('<p>Hello</p>', WIDE)
    const ten = htmlHeightPx(Array.from({ length: 10 }, () => 'Hello').join('<br>'), WIDE)
    assert.ok(ten - one > 5 * LINE_PX)
    const text = `<p>${'word '.repeat(400)}</p>`
    assert.ok(htmlHeightPx(text, 330) > 2 * htmlHeightPx(text, WIDE))
  })

  test('counts pictures and spacers as high as they say, and no wider than the frame', () => {
    const none = htmlHeightPx('', WIDE)
    assert.equal(htmlHeightPx('<img height="200" width="300">', WIDE) - none, 200)
    assert.equal(htmlHeightPx('<img height="400" width="2000">', WIDE) - none, 200)
    assert.equal(htmlHeightPx('<table><tr><td style="height: 80px"></td></tr></table>', WIDE) - none, 80)
  })

  test('a row of a table is a row, however many cells it has', () => {
    const row = `<tr>${'<td>12.50</td>'.repeat(6)}</tr>`
    assert.ok(htmlHeightPx(`<table>${row.repeat(10)}</table>`, WIDE) < 14 * LINE_PX)
  })

  test('leaves out what nobody sees', () => {
    const unseen = '<style>p { color: red }</style><div style="display:none">preheader <b>hidden</b></div>'
    assert.equal(htmlHeightPx(`${unseen}<p>Hi</p>`, WIDE), htmlHeightPx('<p>Hi</p>', WIDE))
  })

  test('counts what is small and not nothing', () => {
    const text = `<p>${'word '.repeat(400)}</p>`
    const seen = htmlHeightPx(text, WIDE)
    const within = (style: string): number => htmlHeightPx(`<div style="${style}">${text}</div>`, WIDE)
    assert.equal(within('font-size:0.9em'), seen)
    assert.equal(within('max-height: 0.5em'), seen)
    for (const nothing of ['font-size:0', 'font-size: 0px', 'color:red; max-height:0; opacity:1']) {
      assert.equal(within(nothing), htmlHeightPx('', WIDE), nothing)
    }
  })

  test('is finite, and quick, for hostile HTML', () => {
    for (const html of [
      '<div>'.repeat(60_000),
      '<img height="99999999">',
      '<td height="-5">',
      '<'.repeat(1e6),
      '<b style="height: 9e9px">',
    ]) {
      const px = htmlHeightPx(html, WIDE)
      assert.ok(Number.isFinite(px) && px >= 0 && px < 1e8, `${px}`)
    }
  })
})
