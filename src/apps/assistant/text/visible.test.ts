import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { mailboxesOf } from './addresses.ts'
import { canBeRead, colourOf } from './colours.ts'
import { HTML_CHARS_MAX, htmlText, TEXT_CHARS_MAX } from './html.ts'
import { withoutInvisible } from './invisible.ts'
import { withoutQuotes } from './quotes.ts'
import { BLOCKS_MAX } from './style-sheet.ts'
import { type MessageParts, visibleMessage } from './visible.ts'

type Part = MessageParts['parts'][number]

function part(mimeType: string, body: string | Buffer, more: Partial<Part> = {}): Part {
  const bytes = Buffer.from(body as string)
  return { mimeType, fileName: '', headers: [], bytes, sizeBytes: bytes.length, ...more }
}

function read(parts: Part[], headers: [string, string][] = []) {
  return visibleMessage({ id: 'm', threadId: 't', labelIds: ['INBOX'], internalMs: 5, headers, parts })
}

describe('text that a person does not see is not read', () => {
  const hidden: [how: string, html: string, code: string][] = [
    ['display:none', '<p style="display:none">HID</p>', 'display-none'],
    ['display:none with odd spaces', '<p style=" DISPLAY : none !important ">HID</p>', 'display-none'],
    ['a comment inside of a style', '<p style="disp/**/lay:no/* */ne">HID</p>', 'display-none'],
    ['escapes in a style', '<p style="dis\\70 lay:none">HID</p>', 'display-none'],
    ['a value that no program knows after it', '<p style="display:none;display:foo">HID</p>', 'display-none'],
    [
      'an important value before another',
      '<p style="color:#fff!important;color:#000">HID</p>',
      'same-colour',
    ],
    ['a colour that no program knows after it', '<p style="color:#fff;color:foo()x">HID</p>', 'same-colour'],
    [
      'an important rule over its own style',
      '<style>.i{color:#fff !important}</style><p class=i style="color:#000">HID</p>',
      'same-colour',
    ],
    [
      'the later of two rules, however its classes are ordered',
      '<style>.a{color:#000}.b{color:#fff}</style><p class="b a">HID</p>',
      'same-colour',
    ],
    [
      'a rule for paper and all else',
      '<style>@media print,all{.s{display:none}}</style><p class=s>HID</p>',
      'display-none',
    ],
    [
      'a rule for all but small screens',
      '<style>@media not (max-width:9px){.s{display:none}}</style><p class=s>HID</p>',
      'display-none',
    ],
    [
      'a rule that is too long',
      `<style>${'div '.repeat(99)}.k{color:#fff}</style><p class=k>HID</p>`,
      'same-colour',
    ],
    ['a rule beside something', '<style>i + .k{color:#fff}</style><i></i><p class=k>HID</p>', 'same-colour'],
    ['a rule for links', '<style>a:link{color:#fff}</style><a href=x>HID</a>', 'same-colour'],
    ['a name with escapes', '<style>.\\6b{color:#fff}</style><p class=k>HID</p>', 'same-colour'],
    ['a name with signs', '<style>.a\\:b{color:#fff}</style><p class="a:b">HID</p>', 'same-colour'],
    [
      'a rule after a sign in a string',
      '<style>@media print{i{content:"{"}}.k{color:#fff}</style><p class=k>HID</p>',
      'same-colour',
    ],
    ['a value with a comma', '<style>[title="a,b"]{color:#fff}</style><p title="a,b">HID</p>', 'same-colour'],
    [
      'a table without its body',
      '<style>table > tbody > tr > td{color:#fff}</style><table><tr><td>HID</table>',
      'same-colour',
    ],
    [
      'an important background',
      '<style>.k{background:#fff!important}</style><p class=k style="background:#000;color:#fff">HID</p>',
      'same-colour',
    ],
    [
      'the colour of what is around it',
      '<style>.k{color:#000}</style><div style="color:#fff"><p class=k style="color:inherit">HID</p></div>',
      'same-colour',
    ],
    [
      'what letters are filled with',
      '<div style="-webkit-text-fill-color:#fff"><p style="color:#000">HID</p></div>',
      'same-colour',
    ],
    [
      'a share of the font around it',
      '<style>.k{font-size:16px}</style><div style="font-size:0"><p class=k style="font-size:1em">HID</p></div>',
      'tiny-font',
    ],
    ['visibility', '<p style="visibility:hidden">HID</p>', 'visibility'],
    ['no opacity', '<p style="opacity:0.01">HID</p>', 'opacity'],
    ['a filter', '<p style="filter:opacity(0%)">HID</p>', 'opacity'],
    ['no font', '<p style="font-size:0">HID</p>', 'tiny-font'],
    ['a font of one pixel', '<p style="font:1px/1 Arial">HID</p>', 'tiny-font'],
    ['a font that is calculated', '<p style="font-size:calc(1px*0)">HID</p>', 'tiny-font'],
    [
      'a font of a share of another',
      '<p style="font-size:10%"><b style="font-size:10%">HID</b></p>',
      'tiny-font',
    ],
    ['white on white', '<p style="color:white">HID</p>', 'same-colour'],
    ['white by attribute', '<font color="#FFF">HID</font>', 'same-colour'],
    [
      'the colour of a background above',
      '<table bgcolor="navy"><tr><td style="color:#000082">HID</table>',
      'same-colour',
    ],
    ['a colour that nobody can tell', '<p style="color:var(--x)">HID</p>', 'same-colour'],
    ['a transparent colour', '<p style="color:#00000005">HID</p>', 'same-colour'],
    ['a place off the screen', '<p style="position:absolute;top:-999em">HID</p>', 'off-screen'],
    ['an indent', '<p style="text-indent:-200vw">HID</p>', 'off-screen'],
    ['a transform', '<p style="transform: translateX(-9999px)">HID</p>', 'off-screen'],
    ['letters on each other', '<p style="letter-spacing:-1em">HID</p>', 'off-screen'],
    ['shares of opacity', '<div style="opacity:.3"><p style="opacity:.3">HID</p></div>', 'opacity'],
    ['a filter that blurs', '<p style="filter:blur(40px)">HID</p>', 'opacity'],
    ['a filter that bleaches', '<p style="-webkit-filter:brightness(99)">HID</p>', 'opacity'],
    ['a way of mixing colours', '<p style="mix-blend-mode:screen">HID</p>', 'opacity'],
    [
      'a way of mixing colours beside something',
      '<style>p + .k,u + .k{mix-blend-mode:screen}</style><p class=k>HID</p>',
      'opacity',
    ],
    ['a filter that blurs in powers of ten', '<p style="filter:blur(1e1px)">HID</p>', 'opacity'],
    ['a filter that darkens', '<p style="filter:brightness(20%)">HID</p>', 'opacity'],
    ['a filter that bleaches grey', '<p style="color:#888;filter:brightness(2)">HID</p>', 'opacity'],
    ['a filter without contrast', '<p style="filter:contrast(.1)">HID</p>', 'opacity'],
    ['filters that add up', '<p style="filter:contrast(.4) brightness(.4)">HID</p>', 'opacity'],
    [
      'filters within each other',
      '<div style="filter:contrast(.3)"><p style="filter:invert(.35)">HID</p></div>',
      'opacity',
    ],
    ['the second of two filters', '<p style="filter:opacity(1) opacity(0)">HID</p>', 'opacity'],
    ['colours halfway to their opposites', '<p style="filter:invert(50%)">HID</p>', 'opacity'],
    ['a filter that nobody can tell', '<p style="filter:brightness(var(--x))">HID</p>', 'opacity'],
    ['a filter after many', `<p style="filter:${'invert(1)'.repeat(50)} blur(9px)">HID</p>`, 'opacity'],
    ['a value that nobody can tell', '<p style="display:var(--x)">HID</p>', 'display-none'],
    ['a value in place of another', '<p style="display:var(--x, none)">HID</p>', 'display-none'],
    [
      'a value with a name, in place of a harmless one',
      '<div style="-\\2d x:none"><p style="display:var(--x,block)">HID</p></div>',
      'display-none',
    ],
    [
      'a value that a rule names, in place of a harmless one',
      '<style>html{--x:none}</style><p style="display:var(--x,block)">HID</p>',
      'display-none',
    ],
    [
      'a condition about programs that reads as one about screens',
      '<style>@supports (max-width:500px){.x{display:none}}</style><p class=x>HID</p>',
      'display-none',
    ],
    [
      'a place of which another rule seems to be',
      '<style>.x:nth-child(n){color:#fff}.x:nth-child(9999){color:#000}</style><p class=x>HID</p>',
      'same-colour',
    ],
    [
      'a box that is ticked',
      '<style>input:checked ~ .x{display:none}</style><input checked><p class=x>HID</p>',
      'display-none',
    ],
    ['zoom', '<p style="zoom:0.01">HID</p>', 'tiny-font'],
    ['the mask of a program', '<p style="-webkit-mask-image:url(x)">HID</p>', 'clipped'],
    [
      'the colours of a gradient',
      '<p style="background:linear-gradient(90deg,#000 0%,#010101)">HID</p>',
      'same-colour',
    ],
    [
      'an image of the text’s own colour',
      '<p style="background-image:linear-gradient(black,black)">HID</p>',
      'same-colour',
    ],
    ['its own colour below it', '<p style="background:currentColor">HID</p>', 'same-colour'],
    ['clip', '<p style="clip:rect(1px,1px,1px,1px)">HID</p>', 'clipped'],
    ['no size', '<p style="height:0;overflow:hidden">HID</p>', 'zero-size'],
    ['lines without height', '<p style="line-height:0;overflow:hidden">HID</p>', 'zero-size'],
    ['a class', '<p class="a b">HID</p><style>.b{display:none}</style>', 'display-none'],
    ['an id in a list of selectors', '<style>h1,#q , h2{opacity:0}</style><p id=Q>HID</p>', 'opacity'],
    [
      'an attribute of a rule',
      '<style>p[data-x="1"]{display:none}</style><p data-x=1>HID</p>',
      'display-none',
    ],
    [
      'all that is below something',
      '<style>.w *{display:none}</style><div class=w><b>HID</b></div>',
      'display-none',
    ],
    [
      'a rule for all screens but huge ones',
      '<style>@media (max-width:9999px){.s{display:none}}</style><p class=s>HID</p>',
      'display-none',
    ],
    [
      'a rule after a thousand others',
      `<style>${'.z{color:red}'.repeat(1_000)}.y{display:none}</style><p class=y>HID</p>`,
      'display-none',
    ],
    [
      'one of many rules for a name',
      `<style>${'p.k{color:red}'.repeat(90)}p.k{display:none}</style><p class=k>HID</p>`,
      'display-none',
    ],
    [
      'a crowd of classes',
      `<style>.y{display:none}</style><p class="${'x '.repeat(99)}y">HID</p>`,
      'attribute',
    ],
    [
      'a rule below all that there is',
      '<style>html body .k{display:none}</style><p class=k>HID</p>',
      'display-none',
    ],
    [
      'a rule for all over which no pointer is',
      '<style>.k:not(:hover){display:none}</style><p class=k>HID</p>',
      'display-none',
    ],
    ['a list of names', '<style>b:is(.k,.l){display:none}</style><b class=k>HID</b>', 'display-none'],
    [
      'a rule within a rule',
      '<style>.a{color:red;& .k{display:none}}</style><div class=a><p class=k>HID</p></div>',
      'display-none',
    ],
    [
      'a rule after one that has another inside',
      '<style>.a{.b{color:red}color:red}.k{display:none}</style><p class=k>HID</p>',
      'display-none',
    ],
    [
      'a condition within a rule',
      '<style>.k{@media screen{display:none}}</style><p class=k>HID</p>',
      'display-none',
    ],
    ['a rule for a part', '<style>@scope(.a){.k{display:none}}</style><p class=k>HID</p>', 'display-none'],
    ['a closed popover', '<div popover>HID</div>', 'attribute'],
    ['the attribute hidden', '<div hidden=""><p>HID</p></div>', 'attribute'],
    ['aria-hidden', '<p aria-hidden=TRUE>HID</p>', 'attribute'],
    ['a closed dialog', '<dialog>HID</dialog>', 'attribute'],
    ['sixty empty lines', `${'<div><br></div>'.repeat(60)}HID`, 'far-below'],
    ['sixty lines of one blank', `${'<p>&nbsp;</p>'.repeat(60)}HID`, 'far-below'],
    ['a gap of thousands of pixels', '<div style="padding-top:4000px"></div>HID', 'far-below'],
  ]
  /** Of which each seems to show what `.k` hides. */
  const shows: [how: string, rules: string][] = [
    ['a rule that is too long', `${'.z '.repeat(120)}.k{color:#000!important}`],
    ['a rule for what stands beside something', 'i ~ .k{color:#000!important}'],
    ['a rule for none of them', '.k:not(.k){color:#000!important}'],
    ['a rule for another place', '.k:nth-child(99){color:#000!important}'],
    ['a rule for something around it that is not one element', '.a.b .k{color:#000!important}'],
    ['a rule for things around it in another order', '.b .a .k{color:#000!important}'],
    ['a rule for what is directly below something else', '.a > .k{color:#000!important}'],
    ['a condition that nobody meets', '@supports (x:y){.k{color:#000!important}}'],
    ['a screen that nobody has', '@media (min-width:9999px){.k{color:#000!important}}'],
    ['a layer below all other rules', '@layer x{.k{color:#000}}'],
    ['a rule within a rule about something else', '.z{& .k{color:#000!important}}'],
    ['a name in other letters', '.K{color:#000!important}'],
    ['an attribute that begins with nothing', '.k[class^=""]{color:#000!important}'],
    ['one of many rules for a name', `${'.k{color:#fff}'.repeat(90)}.z.k{color:#000!important}`],
    ['a later rule that says less', 'div .k{color:#fff}.k{color:#000}'],
  ]
  for (const [how, rules] of shows) {
    test(`where ${how} seems to show it`, () => {
      const html = `<style>.k{color:#fff}${rules}</style><div class=a><div class=b><p class=k>HID</p></div></div>`
      assert.deepEqual([htmlText(html).text, htmlText(html).hidden], ['', ['same-colour']])
    })
  }
  for (const attributes of ['media="(min-width:9999px)"', 'type="text/plain"', 'title="other"']) {
    test(`where a sheet with ${attributes} seems to show it`, () => {
      const html = `<style>.k{color:#fff}</style><style ${attributes}>.k{color:#000!important}</style><p class=k>HID</p>`
      assert.deepEqual(htmlText(html).hidden, ['same-colour'])
    })
  }
  for (const [how, html] of [
    ['a rule for the page', '<style>body{color:#fff}</style>HID<p>HID</p>'],
    ['a rule for the root', '<style>:root{color:#fff}</style><p>HID</p>'],
    ['a rule for everything', '<style>*{color:#fff}</style>HID'],
    ['a tag of the page that comes later', '<p>HID</p><body text="#ffffff">HID'],
  ] as const) {
    test(`by ${how}, where the mail has no page of its own`, () => {
      assert.deepEqual([htmlText(html).text, htmlText(html).hidden], ['', ['same-colour']])
    })
  }

  for (const [how, html, code] of hidden) {
    test(`by ${how}`, () => {
      const { text, hidden: codes } = htmlText(`<p>Seen.</p>${html}`)
      assert.equal(text, 'Seen.')
      assert.deepEqual(codes, [code])
    })
  }

  test('and what it says is kept for people, as far as that is short', () => {
    const html = '<p hidden>Say &lt;b&gt; now.</p><p style="color:#fff">Obey.</p>'
    assert.equal(htmlText(html).hiddenText, 'Say <b> now. Obey.')
    assert.ok(htmlText(`<p hidden>${'x '.repeat(5_000)}</p>`).hiddenText.length <= 1_001)
    const tags = [...'obey'].map((char) => String.fromCodePoint(0xe0000 + char.charCodeAt(0))).join('')
    assert.equal(read([part('text/plain', `Hello${tags}`)]).hiddenText, 'obey')
    const far = read([part('text/plain', `Hello${'\n'.repeat(99)}Obey.`)])
    assert.deepEqual([far.text, far.hiddenText], ['Hello', 'Obey.'])
  })

  test('in comments, scripts, titles and templates, which is no attempt to hide something', () => {
    const { text, hidden: codes } = htmlText(
      '<head><title>HID</title></head><!-- HID --><script>HID</script><template>HID</template><meter>HID</meter>' +
        '<progress>HID</progress><ruby><rp>HID</rp></ruby>Seen.',
    )
    assert.deepEqual([text, codes], ['Seen.', []])
  })

  test('beyond the depth to which elements are read', () => {
    const { text, hidden: codes } = htmlText(`Seen.${'<div>'.repeat(1_000)}HID`)
    assert.deepEqual([text, codes], ['Seen.', ['too-deep']])
  })

  test('in tag characters, with zero width, or turned around', () => {
    const tags = [...'obey'].map((char) => String.fromCodePoint(0xe0000 + char.charCodeAt(0))).join('')
    assert.deepEqual(withoutInvisible(`a${tags}b`), { text: 'ab', found: ['tag-characters'] })
    const spaced = [...'paypal'].join('\u200b')
    assert.deepEqual(withoutInvisible(spaced), { text: 'paypal', found: ['zero-width-characters'] })
    assert.deepEqual(withoutInvisible('a\u202e\u202d\u202e\u202cb'), {
      text: 'ab',
      found: ['bidi-characters'],
    })
  })
})

describe('text that a person sees is read', () => {
  test('in fonts of a size of their own within a container without one, as newsletters are built', () => {
    const html = '<td style="font-size:0px"><div style="font-size:13px">Seen.</div></td>'
    assert.deepEqual(htmlText(html), {
      text: 'Seen.',
      hidden: [],
      hiddenText: '',
      imageTexts: [],
      work: htmlText(html).work,
    })
  })

  test('white on a dark background, and grey on white', () => {
    assert.equal(htmlText('<div style="background:#036"><b style="color:#fff">Seen.</b></div>').text, 'Seen.')
    assert.equal(htmlText('<p style="color:#999">Seen.</p>').text, 'Seen.')
  })

  test('where a small or a dark screen alone hides it, as newsletters do', () => {
    const rules = '@media only screen and (max-width:600px){.a{display:none!important}}'
    const dark = '@media (prefers-color-scheme: dark){.a{color:#fff!important}}'
    assert.equal(htmlText(`<style>${rules}${dark}</style><p class=a>Seen.</p>`).text, 'Seen.')
  })

  test('on a gradient that it can be read on, and within shares of opacity that leave enough of it', () => {
    const html =
      '<div style="background:linear-gradient(#036,#047);opacity:.9"><b style="color:#fff;opacity:.8">Seen.</b></div>'
    assert.equal(htmlText(html).text, 'Seen.')
  })
  test('beside rules within rules that are about something else', () => {
    const html =
      '<style>.a{.b{display:none}.c{color:red}}@font-face{src:url(x)}</style><p class="a c">Seen.</p>'
    assert.equal(htmlText(html).text, 'Seen.')
  })
  test('where colours are mixed in Gmail alone, as newsletters do against its dark mode', () => {
    const rules =
      'u + .body .gmail-blend-screen{mix-blend-mode:screen}u + .body .gmail-blend-difference{mix-blend-mode:difference}'
    const html = `<style>${rules}</style><body class=body><div class=gmail-blend-screen><div class=gmail-blend-difference>Seen.`
    assert.equal(htmlText(html).text, 'Seen.')
  })
  const honest: [what: string, html: string][] = [
    [
      'on a dark page without a tag of its own',
      '<style>html,body{background:#123;color:#fff;font-size:80%;width:100%!important}</style><p>Seen.</p>',
    ],
    [
      'on a dark page with one',
      '<style>body{background:#123;color:#fff;opacity:.3}</style><html><body class=x><p>Seen.</p></body></html>',
    ],
    [
      'beside a rule about something else that is too long',
      `<style>${'.z '.repeat(120)}.y{display:none}${'.z '.repeat(120)}.y .x{color:#fff}</style><p>Seen.</p>`,
    ],
    [
      'on rows that are dark by turns',
      '<style>tr:nth-child(2n){background:#036}tr:nth-child(2n){color:#fff}</style><table><tr><td>Seen.</table>',
    ],
    [
      'within a condition that makes it white on black in two rules',
      '<style>@supports (display:grid){.a{background:#000}.a p{color:#fff}}</style><div class=a><p>Seen.</p></div>',
    ],
    [
      'on buttons, by rules for elements within others',
      '<style>table.button > tbody > tr > td{background:#06c}.button td a.Link{color:#fff}</style>' +
        '<table class=button><tbody><tr><td bgcolor="#0066cc"><a class=Link href=x>Seen.</a></table>',
    ],
    [
      'on a large screen, as newsletters write it',
      '<style>@media only screen and (min-width:480px){.d{background:#000}.d p{color:#fff}}</style><div class=d><p>Seen.</p></div>',
    ],
    [
      'with hundreds of rules for links elsewhere',
      `<style>${Array.from({ length: 400 }, (_, n) => `.s${n} a{color:#fff}`).join('')}</style><a href=x>Seen.</a>`,
    ],
    [
      'with what newsletters write against blue links in Gmail',
      '<style>u + #body a{color:inherit;font-size:inherit}#MessageViewBody a{color:inherit}a[x-apple-data-detectors]{color:inherit!important}</style>' +
        '<body id=body><table><tr><td bgcolor="#111111"><a href=x style="color:#ffffff">Seen.</a></table>',
    ],
  ]
  for (const [what, html] of honest) {
    test(what, () => {
      assert.deepEqual([htmlText(html).text, htmlText(html).hidden], ['Seen.', []])
    })
  }

  for (const style of [
    'filter:brightness(1)',
    'filter:brightness(110%) contrast(.9);-webkit-filter:brightness(110%) contrast(.9)',
    'filter:invert(1)',
    'filter:blur(0)',
    'display:var(--x, block)',
    'mix-blend-mode:normal',
  ]) {
    test(`with ${style}`, () => {
      const { text, hidden } = htmlText(`<p style="${style}">Seen.</p>`)
      assert.deepEqual([text, hidden], ['Seen.', []])
    })
  }
  test('where only print or the pointer hides it', () => {
    const html = '<style>@media print{.a{display:none}} .a:hover{display:none}</style><p class=a>Seen.</p>'
    assert.equal(htmlText(html).text, 'Seen.')
  })

  test('with its lines, lists, cells and quotes', () => {
    const html =
      '<p>Dear J,</p><ul><li>one<li>two</ul><table><tr><td>a</td><td>b</td></tr></table><blockquote>old<br>words</blockquote>'
    assert.equal(htmlText(html).text, 'Dear J,\n\n- one\n- two\n\na b\n\n> old\n> words')
  })

  test('with the joiners and selectors that writing and emoji need', () => {
    assert.equal(withoutInvisible('نمی‌خواهم ✂️ 👩‍💻').text, 'نمی‌خواهم ✂️ 👩‍💻')
  })
})

describe('a message', () => {
  test('is its HTML where it has one: what stands only in the plain text was never seen', () => {
    const mail = read([part('text/plain', 'OTHER'), part('text/html', '<p>Shown.</p>')])
    assert.equal(mail.text, 'Shown.')
  })

  test('is all of its texts where they stand one after another', () => {
    const parts = [
      part('text/html', 'One'),
      part('image/png', 'x', { fileName: 'a.png' }),
      part('text/html', 'Two'),
    ]
    assert.equal(read(parts).text, 'One\n\nTwo')
    assert.equal(
      read([part('text/plain', 'One'), part('text/plain', 'list footer')]).text,
      'One\n\nlist footer',
    )
  })

  test('of images alone is what stands for them', () => {
    assert.equal(read([part('text/html', '<img alt="Sale: 20 %">')]).text, '[image: Sale: 20 %]')
  })

  test('is read in the charset that it names', () => {
    const headers: [string, string][] = [['Content-Type', 'text/plain; charset=iso-8859-1']]
    assert.equal(read([part('text/plain', Buffer.from('Grüße', 'latin1'), { headers })]).text, 'Grüße')
  })

  test('has its attachments by name, and their texts are not part of it', () => {
    const mail = read([
      part('text/plain', 'Hi'),
      part('text/plain', 'SECRET', { fileName: 'no\u202etes.txt' }),
    ])
    assert.equal(mail.text, 'Hi')
    assert.deepEqual(mail.attachments, [{ name: 'notes.txt', mimeType: 'text/plain', sizeBytes: 6 }])
  })

  test('without anything is empty and not refused', () => {
    const mail = read([])
    assert.deepEqual([mail.text, mail.from.address, mail.messageId, mail.subject], ['', '', '', ''])
  })

  test('has ids that can stand in a header, and nothing else', () => {
    const mail = read(
      [],
      [
        ['Message-ID', '<a@b>\r\nBcc: x@y'],
        ['References', 'junk <1@b> \r\n <2@b> <br\noken>'],
      ],
    )
    assert.deepEqual([mail.messageId, mail.references], ['<a@b>', '<1@b> <2@b>'])
  })
})

describe('quoted parts', () => {
  const cases: [what: string, text: string, kept: string][] = [
    ['an announced quote', 'Yes.\n\nOn Mon, 3 Nov 2026 at 10:00, A <a@b.c> wrote:\n> old', 'Yes.'],
    ['one in German', 'Ja.\n\nAm 3.11.2026 um 10:00 schrieb A <a@b.c>:\n\n> alt\n> alt', 'Ja.'],
    [
      'an announcement over two lines',
      'Oui.\n\nLe lun. 3 nov. 2026 à 10:00, A <a@b.c>\na écrit :\n> vieux',
      'Oui.',
    ],
    ['answers between quotes', '> one?\n\nyes\n\n> two?\n\nno', 'yes\n\nno'],
    ['what Outlook writes', 'Fine.\n\nFrom: A <a@b.c>\nSent: Monday\nTo: J\nSubject: x\n\nold', 'Fine.'],
    ['an original message', 'Fine.\n-----Original Message-----\nold', 'Fine.'],
    ['none', 'From: the beginning, all was well.\nTruly.', 'From: the beginning, all was well.\nTruly.'],
  ]
  for (const [what, text, kept] of cases) {
    test(`are left out: ${what}`, () => {
      assert.equal(withoutQuotes(text, { isForward: false }), kept)
    })
  }

  test('of a forwarded message are what it is about', () => {
    const text = 'See below.\n\nFrom: A <a@b.c>\nSent: Monday\n\nnews'
    assert.equal(withoutQuotes(text, { isForward: true }), text)
  })
})

describe('addresses', () => {
  test('are read with names that hold commas, quotes and brackets', () => {
    assert.deepEqual(
      mailboxesOf('"Doe, \\"J\\" <x>" <j@d.example>, plain@d.example; Ann (work) <ann@d.example>'),
      [
        { name: 'Doe, "J" <x>', address: 'j@d.example' },
        { name: '', address: 'plain@d.example' },
        { name: 'Ann (work)', address: 'ann@d.example' },
      ],
    )
  })

  test('that could carry a header are none', () => {
    assert.deepEqual(mailboxesOf('a@b\r\nBcc: c@d, <a b@c>, nobody'), [])
  })
})

describe('colours', () => {
  test('are read as browsers read them', () => {
    assert.deepEqual(colourOf('RebeccaPurple'), [102, 51, 153, 1])
    assert.deepEqual(colourOf('rgb(100% 0% 0% / 50%)'), [255, 0, 0, 0.5])
    assert.deepEqual(colourOf('hsl(240, 100%, 50%)'), [0, 0, 255, 1])
    assert.equal(colourOf('nocolour'), undefined)
    assert.equal(colourOf('oklch(1 0 0)'), 'unknown')
  })

  test('can be read on each other the same both ways', () => {
    const channel = fc.integer({ min: 0, max: 255 })
    fc.assert(
      fc.property(fc.tuple(channel, channel, channel), fc.tuple(channel, channel, channel), (one, other) => {
        assert.equal(canBeRead([...one, 1], [...other, 1]), canBeRead([...other, 1], [...one, 1]))
      }),
      { numRuns: 50 },
    )
  })
})

describe('hostile HTML', () => {
  const SIZE = 60_000
  const shapes: [what: string, make: (size: number) => string][] = [
    ['open elements', (size) => '<b>'.repeat(size / 3)],
    ['elements in turn', (size) => '<i>x</i>'.repeat(size / 8)],
    ['paragraphs that end each other', (size) => '<p>x'.repeat(size / 4)],
    ['broken tags', (size) => '<a '.repeat(size / 3)],
    ['quotes that never end', (size) => `<p style="${'x:y;'.repeat(size / 4)}`],
    ['comments that never end', (size) => '<!--'.repeat(size / 4)],
    ['styles that never end', (size) => `<style>${'/*'.repeat(size / 2)}`],
    ['rules without elements', (size) => `<style>${'.a{display:none}'.repeat(size / 16)}</style>`],
    ['braces', (size) => `<style>${'{'.repeat(size)}</style><p>x`],
    ['selectors', (size) => `<style>${'a b>c,'.repeat(size / 6)}{display:none}</style><p>x`],
    [
      'rules within a rule of many selectors',
      (size) => `<style>${'a,'.repeat(size / 4)}a{${'&{color:red}'.repeat(size / 24)}}</style><p>x`,
    ],
    [
      'rules within a rule of a long selector',
      (size) => `<style>${'a'.repeat(size / 2)}{${'&{color:red}'.repeat(size / 24)}}</style><p>x`,
    ],
    [
      'rules and elements of one name',
      (size) => `<style>${'p[a]{color:red}'.repeat(size / 30)}</style>${'<p a>x</p>'.repeat(size / 20)}`,
    ],
    [
      'rules for what is within many others',
      (size) =>
        `<style>${'.a .b .c .p{color:red}'.repeat(size / 60)}</style>${'<b class=a>'.repeat(300)}${'<p class=p>x</p>'.repeat(size / 40)}`,
    ],
    [
      'rules in doubt',
      (size) =>
        `<style>${Array.from({ length: size / 60 }, (_, n) => `i + p:not(.${n}){color:red}`).join('')}</style>${'<p>x</p>'.repeat(size / 40)}`,
    ],
    [
      'names in other letters',
      (size) => `<style>${'.A{color:red}'.repeat(size / 26)}</style>${'<p class=a>x</p>'.repeat(size / 40)}`,
    ],
    [
      'blanks in a condition',
      (size) => `<style>@media x${' '.repeat(10 * size)}y{.a{color:red}}</style><p>x`,
    ],
    [
      'rules within nothing but each other',
      (size) => `<style>${'x'.repeat(size)}{${'&{'.repeat(size)}</style><p>x`,
    ],
    ['namespaces', (size) => `<style>${'a'.repeat(size)}|b{color:red}</style><p>x`],
    ['blanks', (size) => ' '.repeat(size)],
    ['hard blanks', (size) => '&nbsp;'.repeat(size / 6)],
    ['line ends in pre', (size) => `<pre>${'\n'.repeat(size)}`],
  ]
  for (const [what, make] of shapes) {
    test(`of ${what} takes twice the steps for twice the size`, () => {
      const [small, large] = [htmlText(make(SIZE)), htmlText(make(2 * SIZE))]
      assert.ok(large.work <= 2.2 * small.work + 50, `${small.work} steps, then ${large.work}`)
      assert.ok(large.text.length <= TEXT_CHARS_MAX + 2 * SIZE)
    })
  }

  const nested: [what: string, css: string][] = [
    ['braces', '{'],
    ['rules within rules', 'a{'],
    ['rules side by side', 'b{}'],
    ['declarations between', 'x;{'],
    ['conditions', '@media x{'],
  ]
  for (const [what, css] of nested) {
    test(`of 360 KB of ${what} within a rule takes no more steps than blocks are read, and is not seen`, () => {
      const html = `<style>.a{${css.repeat(360_000 / css.length)}</style><p>HID</p>`
      const { text, hidden, work } = htmlText(html)
      assert.ok(work <= 2 * BLOCKS_MAX + html.length / 50, `${work} steps`)
      assert.deepEqual([text, hidden], ['', ['display-none']])
    })
  }

  test('of more selectors than are read is not seen at all, whatever its further rules say', () => {
    const rules = `${'a,'.repeat(20_000)}a{color:red}.k{color:#000!important}`
    const { text, hidden } = htmlText(`<style>${rules}</style><p style="color:#fff">HID</p>`)
    assert.deepEqual([text, hidden], ['', ['display-none']])
  })

  test('is cut where it is too much, and says so', () => {
    const { hidden } = htmlText(`<p>x</p>${' '.repeat(HTML_CHARS_MAX)}<p>y</p>`)
    assert.deepEqual(hidden, ['cut'])
    const long = read([part('text/html', '<p>word word</p>'.repeat(20_000))])
    assert.ok(long.text.length <= TEXT_CHARS_MAX)
    assert.ok(long.hidden.includes('cut'))
  })

  test('of any kind gives a text and never an error', () => {
    const piece = fc.constantFrom(
      '<p>',
      '</p>',
      '<style>',
      '</style>',
      '.a{',
      '}',
      '<!--',
      '-->',
      'a',
      ' style="',
      '"',
      '<br>',
      '&',
      '\u202e',
    )
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 60 }), (pieces) => {
        assert.equal(typeof htmlText(pieces.join('')).text, 'string')
      }),
      { numRuns: 200 },
    )
  })
})
