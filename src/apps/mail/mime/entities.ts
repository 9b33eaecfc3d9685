/** Named characters of HTML that mail uses: those of HTML 4. Unknown names stay as they are written. */

const LATIN1 =
  'nbsp iexcl cent pound curren yen brvbar sect uml copy ordf laquo not shy reg macr deg plusmn sup2 sup3 acute micro para middot cedil sup1 ordm raquo frac14 frac12 frac34 iquest Agrave Aacute Acirc Atilde Auml Aring AElig Ccedil Egrave Eacute Ecirc Euml Igrave Iacute Icirc Iuml ETH Ntilde Ograve Oacute Ocirc Otilde Ouml times Oslash Ugrave Uacute Ucirc Uuml Yacute THORN szlig agrave aacute acirc atilde auml aring aelig ccedil egrave eacute ecirc euml igrave iacute icirc iuml eth ntilde ograve oacute ocirc otilde ouml divide oslash ugrave uacute ucirc uuml yacute thorn yuml'

const GREEK =
  'Alpha Beta Gamma Delta Epsilon Zeta Eta Theta Iota Kappa Lambda Mu Nu Xi Omicron Pi Rho - Sigma Tau Upsilon Phi Chi Psi Omega'

const OTHERS: readonly (readonly [name: string, code: number])[] = [
  ['amp', 38],
  ['lt', 60],
  ['gt', 62],
  ['quot', 34],
  ['apos', 39],
  ['OElig', 0x152],
  ['oelig', 0x153],
  ['Scaron', 0x160],
  ['scaron', 0x161],
  ['Yuml', 0x178],
  ['fnof', 0x192],
  ['circ', 0x2c6],
  ['tilde', 0x2dc],
  ['ensp', 0x2002],
  ['emsp', 0x2003],
  ['thinsp', 0x2009],
  ['zwnj', 0x200c],
  ['zwj', 0x200d],
  ['lrm', 0x200e],
  ['rlm', 0x200f],
  ['ndash', 0x2013],
  ['mdash', 0x2014],
  ['lsquo', 0x2018],
  ['rsquo', 0x2019],
  ['sbquo', 0x201a],
  ['ldquo', 0x201c],
  ['rdquo', 0x201d],
  ['bdquo', 0x201e],
  ['dagger', 0x2020],
  ['Dagger', 0x2021],
  ['bull', 0x2022],
  ['hellip', 0x2026],
  ['permil', 0x2030],
  ['prime', 0x2032],
  ['lsaquo', 0x2039],
  ['rsaquo', 0x203a],
  ['euro', 0x20ac],
  ['trade', 0x2122],
  ['larr', 0x2190],
  ['uarr', 0x2191],
  ['rarr', 0x2192],
  ['darr', 0x2193],
  ['harr', 0x2194],
  ['minus', 0x2212],
  ['infin', 0x221e],
  ['asymp', 0x2248],
  ['ne', 0x2260],
  ['le', 0x2264],
  ['ge', 0x2265],
  ['sigmaf', 0x3c2],
]

const NAMED = new Map<string, number>(OTHERS)
for (const [place, name] of LATIN1.split(' ').entries()) NAMED.set(name, 160 + place)
for (const [place, name] of GREEK.split(' ').entries()) {
  NAMED.set(name, 0x391 + place)
  NAMED.set(name.toLowerCase(), 0x3b1 + place)
}

/** Those that browsers take without a semicolon too, of which mail has many. */
const BARE = new Set(['amp', 'lt', 'gt', 'quot', 'nbsp', 'copy', 'reg'])

const ENTITY = /&(?:#(\d{1,8}|[xX][0-9a-fA-F]{1,7})|([A-Za-z][A-Za-z0-9]{1,15}))(;?)/g

export function decodeEntities(text: string): string {
  if (!text.includes('&')) return text
  return text.replace(ENTITY, (whole, number: string | undefined, name: string | undefined, end: string) => {
    if (number !== undefined) return numbered(number)
    const code = NAMED.get(name!)
    return code === undefined || (end === '' && !BARE.has(name!)) ? whole : String.fromCodePoint(code)
  })
}

const C1 = new TextDecoder('windows-1252')

function numbered(digits: string): string {
  const code = /^x/i.test(digits) ? Number.parseInt(digits.slice(1), 16) : Number(digits)
  // Written by programs that took windows-1252 for Unicode; browsers read it so.
  if (code >= 0x80 && code <= 0x9f) return C1.decode(Uint8Array.of(code))
  if (code === 0 || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) return '\ufffd'
  return String.fromCodePoint(code)
}
