/** XML as S3 speaks it: written from values, and read as far as its own requests go. */
import type { SimAnswer } from '../server.ts'

export type XmlValue =
  | string
  | number
  | boolean
  | readonly XmlValue[]
  | { readonly [name: string]: XmlValue | undefined }

const NAMESPACE = 'http://s3.amazonaws.com/doc/2006-03-01/'

/** A list is its element several times. */
function elements(name: string, value: XmlValue | undefined): string {
  if (value === undefined) return ''
  if (Array.isArray(value)) return value.map((one: XmlValue) => elements(name, one)).join('')
  if (typeof value !== 'object') return `<${name}>${escapeXml(String(value))}</${name}>`
  const inner = Object.entries(value).map(([child, own]) => elements(child, own as XmlValue))
  return `<${name}>${inner.join('')}</${name}>`
}

export function xmlAnswer(
  root: string,
  value: XmlValue,
  { status = 200, headers = {} }: { status?: number; headers?: Record<string, string> } = {},
): SimAnswer {
  const isError = root === 'Error'
  const document = elements(root, value)
  const text = isError ? document : document.replace(`<${root}>`, `<${root} xmlns="${NAMESPACE}">`)
  return {
    status,
    headers: { 'content-type': 'application/xml', ...headers },
    body: Buffer.from(`<?xml version="1.0" encoding="UTF-8"?>\n${text}`),
  }
}

function escapeXml(text: string): string {
  return (
    text
      .replaceAll('&', '&amp;')
      .replaceAll('<', '&lt;')
      .replaceAll('>', '&gt;')
      .replaceAll('"', '&quot;')
      // biome-ignore lint/suspicious/noControlCharactersInRegex: keys may have them, and S3 writes them so
      .replace(/[\u0000-\u001f]/g, (character) => `&#x${character.charCodeAt(0).toString(16)};`)
  )
}

/** What stands in each element of that name. */
export function allOf(xml: string, name: string): string[] {
  return [...xml.matchAll(new RegExp(`<${name}(?:\\s[^>]*)?(?:/>|>([\\s\\S]*?)</${name}>)`, 'g'))].map(
    ([, inner = '']) => inner,
  )
}

/** The text of the first element of that name. */
export function textOf(xml: string, name: string): string | undefined {
  const [inner] = allOf(xml, name)
  return inner === undefined ? undefined : unescapeXml(inner.trim())
}

function unescapeXml(text: string): string {
  return text.replace(/&(?:#x([0-9a-f]+)|#(\d+)|(\w+));/gi, (whole, hex, decimal, name) => {
    if (hex !== undefined) return String.fromCodePoint(Number.parseInt(hex, 16))
    if (decimal !== undefined) return String.fromCodePoint(Number(decimal))
    return NAMED[name as string] ?? whole
  })
}

const NAMED: Record<string, string> = { lt: '<', gt: '>', amp: '&', quot: '"', apos: "'" }
