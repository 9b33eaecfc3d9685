/** Links, mail addresses, numbers of phones and accounts in a text: where they are, and what makes two of them one. */

export type Reference = {
  kind: 'link' | 'address' | 'number' | 'token'
  from: number
  to: number
  /** The same for every way of writing it. */
  key: string
}

/** Common endings of bare hosts, besides every country's: `evil.example` is no link until somebody makes it one. */
const ENDINGS =
  'com|org|net|edu|gov|mil|int|info|biz|name|pro|app|dev|xyz|online|site|shop|store|top|club|live|cloud|page|link|click|icu|tech|space|website|world|today|news|blog|email|work|agency|digital|network|systems|solutions|services|support|zone|fun|vip|win|loan|bid|men|date|stream|download|review|country|trade|party|science|racing|cricket|accountant|faith|webcam|gdn|mobi|asia|tel|travel|jobs|museum|coop|aero|cat|post|test|example|invalid|localhost|local|onion|рф|中国|公司|网络|みんな|한국|भारत|бел|укр|ac|ad|ae|af|ag|ai|al|am|ao|aq|ar|as|at|au|aw|ax|az|ba|bb|bd|be|bf|bg|bh|bi|bj|bm|bn|bo|br|bs|bt|bv|bw|by|bz|ca|cc|cd|cf|cg|ch|ci|ck|cl|cm|cn|co|cr|cu|cv|cw|cx|cy|cz|de|dj|dk|dm|do|dz|ec|ee|eg|er|es|et|eu|fi|fj|fk|fm|fo|fr|ga|gb|gd|ge|gf|gg|gh|gi|gl|gm|gn|gp|gq|gr|gs|gt|gu|gw|gy|hk|hm|hn|hr|ht|hu|id|ie|il|im|in|io|iq|ir|is|it|je|jm|jo|jp|ke|kg|kh|ki|km|kn|kp|kr|kw|ky|kz|la|lb|lc|li|lk|lr|ls|lt|lu|lv|ly|ma|mc|md|me|mg|mh|mk|ml|mm|mn|mo|mp|mq|mr|ms|mt|mu|mv|mw|mx|my|mz|na|nc|ne|nf|ng|ni|nl|no|np|nr|nu|nz|om|pa|pe|pf|pg|ph|pk|pl|pm|pn|pr|ps|pt|pw|py|qa|re|ro|rs|ru|rw|sa|sb|sc|sd|se|sg|sh|si|sj|sk|sl|sm|sn|so|sr|ss|st|su|sv|sx|sy|sz|tc|td|tf|tg|th|tj|tk|tl|tm|tn|to|tr|tt|tv|tw|tz|ua|ug|uk|us|uy|uz|va|vc|ve|vg|vi|vn|vu|wf|ws|ye|yt|za|zm|zw|xn--[a-z0-9-]{2,50}'
const HOST = `(?:[\\p{L}\\p{N}](?:[\\p{L}\\p{N}_-]{0,62})\\.){1,10}`
const REST = `[^\\s<>"'\`|{}^\\\\\\]]`

const PATTERNS: readonly [kind: Reference['kind'], pattern: RegExp][] = [
  // With a scheme: any before `//`, and those that do without.
  [
    'link',
    new RegExp(
      `(?<![\\p{L}\\p{N}])(?:[a-z][a-z0-9+.-]{1,30}:(?://|\\\\\\\\|/\\\\)|(?:https?|data|javascript|vbscript|file|blob|about|intent|magnet|cid|view-source|callto|sms|skype|whatsapp|tg|geo|bitcoin|ethereum|monero|xmpp|sip|facetime|ms-[a-z]{2,20}):)${REST}{1,2000}`,
      'giu',
    ),
  ],
  // A letter that is written already: its text may carry something.
  ['link', new RegExp(`mailto:[^\\s?<>]{1,300}\\?${REST}{0,2000}`, 'giu')],
  // Without: `//host/…`, and `host.ending` with or without a path.
  ['link', new RegExp(`(?<![\\p{L}\\p{N}:/])//${HOST}[\\p{L}]{2,30}${REST}{0,2000}`, 'giu')],
  [
    'address',
    /(?<![\p{L}\p{N}._%+-])(?:mailto:)?[\p{L}\p{N}._%+'-]{1,64}\s?[@＠]\s?(?:[\p{L}\p{N}-]{1,63}\.){1,10}[\p{L}]{2,30}/giu,
  ],
  [
    'link',
    new RegExp(
      `(?<![\\p{L}\\p{N}@./-])${HOST}(?:(?:${ENDINGS})(?![\\p{L}\\p{N}_-])|[\\p{L}]{2,30}(?=(?::\\d{2,5})?[/?#]))(?:(?::\\d{2,5})?[/?#]${REST}{0,2000})?`,
      'giu',
    ),
  ],
  // Of three parts and more, with any ending: what is put before a host is told to its owner.
  [
    'link',
    /(?<![\p{L}\p{N}@./-])(?:[\p{L}\p{N}][\p{L}\p{N}_-]{0,62}\.){2,10}[\p{L}]{3,24}(?![\p{L}\p{N}_@-])/giu,
  ],
  ['link', /(?<![\d.])(?:\d{1,3}\.){3}\d{1,3}(?::\d{2,5}|(?=\/))(?:\/[^\s<>"'`]{0,2000})?/g],
  [
    'number',
    /(?<![\p{L}\p{N}])[A-Z]{2}\d{2}(?:[ -]?[A-Z0-9]{4}){2,7}(?:[ -]?[A-Z0-9]{1,3})?(?![\p{L}\p{N}])/gu,
  ],
  ['number', /(?<![\p{N}])(?:tel:)?\+?\(?\d(?:[ \u00a0().\-–—/]{0,3}\d){6,30}(?!\d)/giu],
  // Long runs of letters and digits: keys, hashes, and whatever was encoded.
  ['token', /(?<![\p{L}\p{N}])[A-Za-z0-9_+/=-]{20,4000}/gu],
]

/** Those of a text, from left to right. What lies within another belongs to it; two that overlap are one, and unknown. */
export function referencesIn(text: string): Reference[] {
  const masked = maskMoments(plainDigits(text))
  const found: (Reference & { rank: number })[] = []
  for (const [rank, [kind, pattern]] of PATTERNS.entries()) {
    for (const { 0: raw, index } of (kind === 'number' ? masked : text).matchAll(pattern)) {
      const shown = kind === 'link' ? raw.replace(/[.,;:!?)\]}»”’*_…]+$/u, '') : raw
      if (shown === '' || !counts(kind, shown)) continue
      found.push({ kind, from: index, to: index + shown.length, key: keyOf(kind, shown), rank })
    }
  }
  found.sort((one, other) => one.from - other.from || other.to - one.to || one.rank - other.rank)
  const parted: Reference[] = []
  for (const { kind, from, to, key } of found) {
    const last = parted.at(-1)
    if (!last || from >= last.to) parted.push({ kind, from, to, key })
    else if (to > last.to) {
      last.to = to
      last.kind = 'link'
      last.key = `?${text.slice(last.from, to)}`
    }
  }
  return parted
}

function counts(kind: Reference['kind'], raw: string): boolean {
  if (kind === 'token')
    return /\d/.test(raw) ? /[A-Za-z]/.test(raw) : raw.length >= 40 && /[A-Za-z]{40}/.test(raw)
  if (kind === 'number') return raw.replace(/\D/g, '').length >= 7
  // `done.In` is a missing blank, and `z.B.` an abbreviation.
  if (kind === 'link') return !/^[\p{L}]*\p{Ll}\.\p{Lu}\p{Ll}*$/u.test(raw)
  return true
}

export function keyOf(kind: Reference['kind'], raw: string): string {
  switch (kind) {
    case 'link':
      return linkKey(raw)
    case 'address':
      return raw
        .normalize('NFKC')
        .replace(/^mailto:|\s/gi, '')
        .toLowerCase()
    case 'number':
      return /^[A-Z]{2}\d{2}/.test(raw)
        ? raw.replace(/[\s-]/g, '')
        : raw.replace(/\D/g, '').replace(/^0+/, '')
    case 'token':
      return raw
  }
}

/** Without http(s) and a last slash; the host in small letters, and the rest as it is: it may carry something. */
function linkKey(raw: string): string {
  const bare = raw
    .normalize('NFKC')
    .replace(/^https?:[\\/]*|^\/\//i, '')
    .replace(/\/$/, '')
  const end = bare.search(/[/?#]/)
  return end < 0 ? bare.toLowerCase() : bare.slice(0, end).toLowerCase() + bare.slice(end)
}

/** Digits of every script, raised, lowered and in circles as those that people dial, at the same places. */
function plainDigits(text: string): string {
  return text.replace(/(?![0-9])\p{N}/gu, (char) => {
    if (char.length > 1) return char
    const plain = char.normalize('NFKC')
    if (/^[0-9]$/.test(plain)) return plain
    return /\p{Nd}/u.test(char) ? digitOf(char.charCodeAt(0)) : char
  })
}

/** The ten of a script stand together, from a code that ends with 0 or 6. */
function digitOf(code: number): string {
  const start = code & ~0xf
  return String(/\p{Nd}/u.test(String.fromCharCode(start)) ? code - start : code - start - 6)
}

/**
 * Dates, times, years and amounts are no numbers of phones: their digits are put out of sight, at the same places. Years
 * are counted otherwise in Iran (1405) and in Thailand (2569).
 */
const MOMENTS: readonly RegExp[] = [
  /(?<!\d)(?:1[349]|2[05])\d\d[-/.](?:0?[1-9]|1[0-2])[-/.](?:0?[1-9]|[12]\d|3[01])(?!\d)/g,
  /(?<!\d)(?:0?[1-9]|[12]\d|3[01])[./-]\s?(?:0?[1-9]|[12]\d|3[01])[./-]\s?(?:(?:1[349]|2[05])\d\d|\d\d)(?!\d)/g,
  /(?<![\d.])(?:0?[1-9]|[12]\d|3[01])\.\s?(?:0?[1-9]|1[0-2])\.(?!\d)/g,
  /(?<!\d)(?:[01]?\d|2[0-4])[:.h][0-5]\d(?!\d)/g,
  /(?<!\d)(?:19|20)\d\d\s?[-–—/]\s?(?:19|20)\d\d(?!\d)/g,
  /(?:[€$£¥]|\b(?:eur|usd|gbp|chf|jpy|pln))\s?\d{1,3}(?:[.,' ’]\d{3}){0,2}(?:[.,]\d{1,2})?(?!\d)/gi,
  /(?<!\d)\d{1,3}(?:[.,' ’]\d{3}){0,2}(?:[.,]\d{1,2})?\s?(?:[€$£¥]|(?:eur|usd|gbp|chf|jpy|pln)\b)/gi,
]

function maskMoments(text: string): string {
  return MOMENTS.reduce(
    (masked, pattern) => masked.replace(pattern, (hit) => hit.replace(/[^\n]/g, 'x')),
    text,
  )
}
