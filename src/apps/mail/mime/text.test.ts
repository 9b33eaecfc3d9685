import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { htmlToText, snippet } from './text.ts'

const text = (html: string): string => htmlToText(html, 100_000)

describe('HTML made plain', () => {
  test('drops what is not for reading', () => {
    const html =
      '<html><head><title>t</title><style>p{}</style></head><body><!-- c > --><script>if (a<b) x("</p>")</SCRIPT ><p>Hi</p></body></html>'
    assert.equal(text(html), 'Hi')
    assert.equal(text('<head><p>no end of the head'), 'no end of the head')
    assert.equal(text('a<script>never closed'), 'a')
    assert.equal(text('a<!-- never closed'), 'a')
  })

  test('breaks lines where blocks do', () => {
    assert.equal(text('<div>a</div><div>b<br>c</div><p>d</p>e'), 'a\nb\nc\n\nd\n\ne')
    assert.equal(text('<ul><li>one</li><li>two</li></ul>'), '- one\n- two')
    assert.equal(text('<table><tr><td>a</td><td>b</td></tr><tr><td>c</td></tr></table>'), 'a b\nc')
  })

  test('makes one blank of many, except in preformatted text', () => {
    assert.equal(text('  a \r\n\t b&nbsp;&nbsp;c <b> d</b>e '), 'a b c de')
    assert.equal(text('<pre>a\r\n  b</pre>'), 'a\n  b')
  })

  test('resolves entities, and leaves alone what is none', () => {
    assert.equal(
      text('&lt;b&gt; &amp;amp; &eacute;&#233;&#xE9; &euro; &hellip;&Omega;&omega;'),
      '<b> &amp; ééé € …Ωω',
    )
    assert.equal(
      text('&nosuch; a&b &amp c &#0;&#xD800;&#x110000;&#150;'),
      '&nosuch; a&b & c \ufffd\ufffd\ufffd–',
    )
  })

  test('keeps the text of links, and the signs that open no tag', () => {
    assert.equal(text('<a href="https://x.y/?a>b">link</a> 1 < 2 <3 a<'), 'link 1 < 2 <3 a<')
  })

  test('survives quotes that are not closed', () => {
    assert.equal(text('<a href="x>one</a><p>two</p>'), 'one\n\ntwo')
  })

  test('is no longer than asked for', () => {
    assert.equal(htmlToText('<p>'.concat('ab '.repeat(1_000)), 10), 'ab ab ab a')
    assert.equal(htmlToText('&#128512;&#128512;', 3), '😀')
  })
})

describe('a snippet', () => {
  test('is one line of what can be seen', () => {
    assert.equal(snippet(' a\n\n b\u200b\u034f\u00ad \u0000c '), 'a b c')
  })

  test('is short, also after much filler', () => {
    assert.equal(snippet('x'.repeat(10_000)).length, 200)
    assert.equal(snippet(`${'\u200c '.repeat(1_000)}found`), 'found')
  })
})
