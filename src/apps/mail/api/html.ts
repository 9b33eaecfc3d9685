/**
 * A stranger's HTML as a document for a sandboxed frame. Three walls, each of which would do alone:
 * - only known tags, attributes and styles are written out, with values that were understood and written anew
 * - the answer's policy allows no script, no form, no frame and nothing from the net but what was asked for
 * - the frame is sandboxed, so that it has no origin and reaches nothing of the page around it
 *
 * Style sheets are left out, and so are classes: styles on the elements themselves are kept.
 */
import sanitizeHtml from 'sanitize-html'
import { escapeHtml } from '../../../base/escape-html.ts'
import type { ParsedAttachment } from '../mime/parsed.ts'
import { safeStyle, words } from './style.ts'

const HTML_CHARS_MAX = 2_000_000
/** Each costs time; long newsletters have some thousands. */
const TAGS_MAX = 30_000
/** The parser moves all that is open for each that is opened: 15,000 of them took a second. What is shown has fewer. */
const OPEN_MAX = 1_000
const DEPTH_MAX = 200
const LINK_LENGTH_MAX = 4_000
const ATTRIBUTE_LENGTH_MAX = 2_000
/** Of the document: mail that carries its pictures along is large. */
const DATA_CHARS_MAX = 14_000_000
const INLINE_BYTES_MAX = 5_000_000
const PLAIN_CHARS_MAX = 500_000

export type MailHtml = {
  /** As it came. */
  html: string
  attachments: readonly Pick<ParsedAttachment, 'contentId' | 'type' | 'content'>[]
  /** Whether images are loaded from the net. */
  images: boolean
}

export function framePolicy(images: boolean): string {
  return [
    "default-src 'none'",
    `img-src data:${images ? ' https:' : ''}`,
    "style-src 'unsafe-inline'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'self'",
    'sandbox allow-popups allow-popups-to-escape-sandbox',
  ].join('; ')
}

export function mailDocument(mail: MailHtml): string {
  const html = readable(mail.html)
  const { body, hasColours } = safeBody({ ...mail, html })
  const cut =
    html.length < mail.html.length
      ? '<p><em>The rest of this message is too long to be shown here. Download it to see all of it.</em></p>'
      : ''
  return framedDocument(body + cut, hasColours)
}

/** Where the HTML could not be made safe in time. */
export function plainDocument(text: string): string {
  const why =
    'The formatted version of this message took too long to be made safe. This is its plain text; download the original to see all of it.'
  return framedDocument(
    `<p><em>${why}</em></p><pre>${escapeHtml(text.slice(0, PLAIN_CHARS_MAX))}</pre>`,
    false,
  )
}

function framedDocument(body: string, hasColours: boolean): string {
  // What brings colours of its own was written for white paper.
  const scheme = hasColours ? 'light' : 'light dark'
  const paper = hasColours ? ' background: #fff; color: #1f2328;' : ''
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>Message</title>
<style>
:root { color-scheme: ${scheme} }
body { margin: 0; padding: 12px; font: 15px/1.5 system-ui, sans-serif; overflow-wrap: anywhere;${paper} }
img { max-width: 100%; height: auto }
table { max-width: 100% }
pre { white-space: pre-wrap }
blockquote { margin: 0 0 0 4px; padding-left: 12px; border-left: 3px solid #8886 }
</style></head><body>${body}</body></html>
`
}

/** As much of it as is read: the parser takes long for what is never closed. */
export function readable(html: string): string {
  let at = -1
  let open = 0
  for (let tags = 0; tags < TAGS_MAX && open < OPEN_MAX; tags++) {
    at = html.indexOf('<', at + 1)
    if (at < 0 || at >= HTML_CHARS_MAX) return html.slice(0, HTML_CHARS_MAX)
    TAG.lastIndex = at
    const [, slash, name] = TAG.exec(html) ?? []
    if (name === undefined || ENDED_BY_ITSELF.has(name.toLowerCase())) continue
    open = slash === '' ? open + 1 : Math.max(0, open - 1)
  }
  return html.slice(0, at)
}

const TAG = /<(\/?)([a-z][a-z0-9:-]{0,20})/iy
/** Nothing can be in them, or the next one of its kind ends them. */
const ENDED_BY_ITSELF = new Set(
  words(`
  area base br col embed hr img input link meta param source wbr p li dt dd tr td th thead tbody tfoot
  option optgroup
`),
)

const TAGS = words(`
  a abbr address article aside b bdi bdo big blockquote br caption center cite code col colgroup dd del
  dfn div dl dt em figcaption figure font footer h1 h2 h3 h4 h5 h6 header hr i img ins kbd li main mark
  nav ol p pre q s samp section small span strike strong sub sup table tbody td tfoot th thead time tr
  tt u ul var wbr
`)

/** Their content is no text, or means something else to a browser than to the parser here. */
const DROPPED_WHOLE = words(`
  script style textarea option select xmp noscript noembed noframes iframe object embed applet title svg
  math template plaintext audio video canvas frameset
`)

const SIZE = /^\d{1,5}(?:\.\d{1,3})?%?$/
const NUMBER = /^\d{1,5}$/
const COLOUR = /^#?[a-z0-9]{1,30}$/i
const WORD = /^[a-z-]{1,20}$/i

/** Each with what its value must look like. */
const ATTRIBUTES: Record<string, RegExp> = {
  width: SIZE,
  height: SIZE,
  border: NUMBER,
  cellpadding: NUMBER,
  cellspacing: NUMBER,
  colspan: NUMBER,
  rowspan: NUMBER,
  span: NUMBER,
  start: /^-?\d{1,6}$/,
  size: /^[+-]?\d{1,2}$/,
  align: WORD,
  valign: WORD,
  type: /^(?:[1aAiI]|disc|circle|square)$/,
  dir: /^(?:ltr|rtl|auto)$/i,
  lang: /^[a-z0-9-]{1,35}$/i,
  bgcolor: COLOUR,
  color: COLOUR,
  face: /^[\w ,'-]{1,200}$/,
}
const WRITTEN = new Set([...Object.keys(ATTRIBUTES), 'style', 'title', 'alt', 'href', 'src', 'target', 'rel'])
const COLOURED = /(?:^|[;\s-])(?:color|background(?:-color)?)\s*:/i

type Attributes = Record<string, string>

function safeBody(mail: MailHtml): { body: string; hasColours: boolean } {
  const writer = new AttributeWriter(mail)
  const body = sanitizeHtml(mail.html.replaceAll('\0', ''), {
    allowedTags: TAGS,
    allowedAttributes: { '*': [...WRITTEN] },
    // Checked and written anew by us; a second opinion about schemes does not hurt.
    allowedSchemes: ['http', 'https', 'mailto', 'tel'],
    allowedSchemesByTag: { img: mail.images ? ['data', 'https'] : ['data'] },
    allowProtocolRelative: false,
    nonTextTags: DROPPED_WHOLE,
    nestingLimit: DEPTH_MAX,
    disallowedTagsMode: 'discard',
    parseStyleAttributes: false,
    transformTags: { '*': (tagName, given) => ({ tagName, attribs: writer.write(tagName, given) }) },
  })
  return { body, hasColours: writer.hasColours }
}

class AttributeWriter {
  readonly #mail: MailHtml
  readonly #inline: ReadonlyMap<string, Pick<ParsedAttachment, 'type' | 'content'>>
  #dataChars = 0
  hasColours = false

  constructor(mail: MailHtml) {
    this.#mail = mail
    this.#inline = new Map(
      mail.attachments.flatMap((one) => (one.contentId === null ? [] : [[bareId(one.contentId), one]])),
    )
  }

  /** Nothing of what came is passed on as it is, but for texts that are only read. */
  write(tag: string, given: Attributes): Attributes {
    const written: Attributes = {}
    for (const [name, shape] of Object.entries(ATTRIBUTES)) {
      const value = given[name]?.trim()
      if (value !== undefined && shape.test(value)) written[name] = value
    }
    for (const name of ['title', 'alt']) {
      const value = given[name]
      if (value) written[name] = value.slice(0, ATTRIBUTE_LENGTH_MAX).toWellFormed()
    }
    if (given.style !== undefined) {
      const style = safeStyle(given.style, this.#mail)
      if (style !== '') written.style = style
    }
    this.hasColours ||=
      written.bgcolor !== undefined || written.color !== undefined || COLOURED.test(written.style ?? '')
    if (tag === 'a') Object.assign(written, linkOf(given.href))
    if (tag === 'img') Object.assign(written, this.#imageOf(given.src))
    return written
  }

  #imageOf(source: string | undefined): Attributes {
    const text = source?.trim() ?? ''
    if (/^cid:/i.test(text)) return this.#inlineImage(text.slice('cid:'.length))
    if (/^data:/i.test(text)) return this.#dataImage(text)
    if (!this.#mail.images || text.length > LINK_LENGTH_MAX) return {}
    const url = URL.canParse(text) ? new URL(text) : undefined
    return url?.protocol === 'https:' ? { src: url.href } : {}
  }

  #inlineImage(id: string): Attributes {
    const found = this.#inline.get(bareId(id)) ?? this.#inline.get(bareId(decoded(id)))
    const type = found && RASTER.exec(found.type)?.[0]
    if (!found || type === undefined || found.content.byteLength > INLINE_BYTES_MAX) return {}
    const { buffer, byteOffset, byteLength } = found.content
    return this.#data(type, Buffer.from(buffer, byteOffset, byteLength).toString('base64'))
  }

  #dataImage(text: string): Attributes {
    const [, type, base64] = /^data:(image\/[a-z]{1,10});base64,([\w+/=\s-]*)$/i.exec(text) ?? []
    if (type === undefined || base64 === undefined || !RASTER.test(type.toLowerCase())) return {}
    return this.#data(type.toLowerCase(), base64.replaceAll(/[^\w+/=]/g, ''))
  }

  #data(type: string, base64: string): Attributes {
    if (this.#dataChars + base64.length > DATA_CHARS_MAX) return {}
    this.#dataChars += base64.length
    return { src: `data:${type};base64,${base64}` }
  }
}

/** Pictures that are nothing but pixels. */
const RASTER = /^image\/(?:png|jpe?g|gif|webp|bmp)$/

const LINK_SCHEMES = new Set(['http:', 'https:', 'mailto:', 'tel:'])

/** Places within the mail lead nowhere in a frame, and relative addresses would lead to this server. */
function linkOf(href: string | undefined): Attributes {
  const text = href?.trim() ?? ''
  if (text.length > LINK_LENGTH_MAX || !URL.canParse(text)) return {}
  const url = new URL(text)
  if (!LINK_SCHEMES.has(url.protocol)) return {}
  return { href: url.href, target: '_blank', rel: 'noopener noreferrer' }
}

function bareId(id: string): string {
  return id.trim().replace(/^<|>$/g, '').toLowerCase()
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text // then it is no encoded id
  }
}
