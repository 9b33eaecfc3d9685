/**
 * What sanitised HTML may be made of, read by a strict reader of its own that knows nothing of the sanitiser: text
 * without angle brackets, and tags in the one form that it writes. Whatever does not fit is a finding.
 */

const TAG = /<(\/?)([a-z][a-z0-9]*)((?: [a-z]+(?:="[^"<>]*")?)*)( \/)?>/y
const ATTRIBUTE = / ([a-z]+)(?:="([^"<>]*)")?/g

const TAGS = new Set(
  `a abbr address article aside b bdi bdo big blockquote br caption center cite code col colgroup dd del dfn div dl dt
  em figcaption figure font footer h1 h2 h3 h4 h5 h6 header hr i img ins kbd li main mark nav ol p pre q s samp section
  small span strike strong sub sup table tbody td tfoot th thead time tr tt u ul var wbr`.split(/\s+/),
)
const ATTRIBUTES = new Set(
  `width height border cellpadding cellspacing colspan rowspan span start size align valign type dir lang bgcolor color
  face style title alt href src target rel`.split(/\s+/),
)

/** The first thing that should not be there, or undefined. */
export function findingIn(body: string, { images }: { images: boolean }): string | undefined {
  let at = 0
  while (at < body.length) {
    const open = body.indexOf('<', at)
    const text = body.slice(at, open < 0 ? body.length : open)
    if (text.includes('>')) return `a bare > in ${text.slice(0, 80)}`
    if (open < 0) return undefined
    TAG.lastIndex = open
    const found = TAG.exec(body)
    if (!found) return `no tag in the known form: ${body.slice(open, open + 80)}`
    const [whole, slash, name, attributes = ''] = found
    if (!TAGS.has(name!)) return `the tag ${name}`
    if (slash === '/' && attributes !== '') return `attributes of an end: ${whole}`
    for (const [, attribute, value] of attributes.matchAll(ATTRIBUTE)) {
      const wrong = attributeFinding(attribute!, decode(value ?? ''), { tag: name!, images })
      if (wrong !== undefined) return `${wrong} in ${whole.slice(0, 200)}`
    }
    at = open + whole.length
  }
  return undefined
}

function attributeFinding(
  name: string,
  value: string,
  { tag, images }: { tag: string; images: boolean },
): string | undefined {
  if (!ATTRIBUTES.has(name)) return `the attribute ${name}`
  if (name === 'href') {
    if (tag !== 'a') return `href on ${tag}`
    return /^(?:https?:\/\/|mailto:|tel:)/.test(value) ? undefined : `the link ${value}`
  }
  if (name === 'src') {
    if (tag !== 'img') return `src on ${tag}`
    if (/^data:image\/(?:png|jpe?g|gif|webp|bmp);base64,[\w+/=]*$/.test(value)) return undefined
    return images && value.startsWith('https://') ? undefined : `the image ${value}`
  }
  if (name === 'style') return styleFinding(value, images)
  return undefined
}

function styleFinding(style: string, images: boolean): string | undefined {
  // Whatever a browser might read, with escapes and comments taken away.
  if (/[\\@<>{}]|\/\*/.test(style)) return `strange signs in the style ${style}`
  const remote = [...style.matchAll(/url\s*\(([^)]*)\)/gi)]
  if (remote.length > 0 && !images) return `an address in the style ${style}`
  if (remote.some(([, url]) => !/^"https:\/\/[^"'()\s]+"$/.test(url!)))
    return `the address in the style ${style}`
  if (
    /expression|javascript|behaviou?r|binding|import|image-set|position\s*:/i.test(
      style.replaceAll(/url\("[^"]*"\)/g, ''),
    )
  ) {
    return /background-position/.test(style) ? undefined : `the style ${style}`
  }
  return undefined
}

function decode(text: string): string {
  return text
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&quot;', '"')
    .replaceAll('&amp;', '&')
}

/** What stands between <body> and </body> of a document of ours. */
export function bodyOf(document: string): string {
  const start = document.indexOf('<body>') + '<body>'.length
  return document.slice(start, document.lastIndexOf('</body>'))
}
