/**
 * The kinds of messages that a mailbox holds: the ordinary ones by their share, and the odd ones each in
 * its turn, so that a mailbox of a thousand messages has them all.
 */

import { seededRandom } from '../../base/random.ts'
import { mixed, weighted } from './generate-chance.ts'
import { CONTENT_ODDITIES } from './generate-kinds-content.ts'
import { HEADER_ODDITIES } from './generate-kinds-header.ts'
import type { Letter } from './generate-letter.ts'
import { documentPart, firstLine, multipart, type Part } from './generate-parts.ts'

export type Profile = 'mixed' | 'plain' | 'small'

type Compose = (letter: Letter) => string

const ORDINARY = {
  plain: (letter) => letter.message(letter.text('plain', letter.paragraphs(8))),
  alternative: (letter) => letter.message(letter.alternative(5)),
  html: (letter) => letter.message(letter.text('html', letter.paragraphs(9))),
  newsletter: (letter) => letter.message(letter.alternative(11)),
  attachment: (letter) => letter.message(withDocuments(letter)),
  related: (letter) => letter.message(related(letter)),
  short: (letter) => letter.message(letter.text('plain', 1)),
} satisfies Record<string, Compose>

const KINDS = { ...ORDINARY, ...CONTENT_ODDITIES, ...HEADER_ODDITIES }

export type MessageKind = keyof typeof KINDS

export const MESSAGE_KINDS = Object.keys(KINDS) as MessageKind[]

const ODDITIES = Object.keys({ ...CONTENT_ODDITIES, ...HEADER_ODDITIES }) as MessageKind[]

/** One message of so many is an odd one. */
const ODDITY_EVERY = 7
const ODDITY_TURN = 3

const SHARES: Record<Profile, readonly (readonly [MessageKind, number])[]> = {
  mixed: [
    ['plain', 30],
    ['alternative', 34],
    ['html', 8],
    ['newsletter', 16],
    ['attachment', 8],
    ['related', 4],
  ],
  plain: [
    ['plain', 50],
    ['alternative', 42],
    ['attachment', 8],
  ],
  small: [['short', 1]],
}

export function kindAt(position: { seed: number; index: number; profile: Profile }): MessageKind {
  const { seed, index, profile } = position
  if (profile === 'mixed' && index % ODDITY_EVERY === ODDITY_TURN) {
    return ODDITIES[(mixed(seed, 0x0dd) + Math.floor(index / ODDITY_EVERY)) % ODDITIES.length]!
  }
  return weighted(seededRandom(mixed(seed, index, 0x1d)), SHARES[profile])
}

export function compose(kind: MessageKind, letter: Letter): string {
  return KINDS[kind](letter)
}

function withDocuments(letter: Letter): Part {
  const count = 1 + Math.floor(letter.random() ** 3 * 3)
  const documents = Array.from({ length: count }, () => documentPart(letter.document()))
  return multipart('mixed', [letter.text(), ...documents], { boundary: letter.boundary() })
}

const PIXEL = firstLine(
  'GIF89a\x01\0\x01\0\x80\0\0\xff\xff\xff\0\0\0!\xf9\x04\x01\0\0\0\0,\0\0\0\0\x01\0\x01\0\0\x02\x02D\x01\0;',
)

function related(letter: Letter): Part {
  const cid = `img${letter.plan.index}@example.com`
  const image = documentPart(
    { name: 'logo.gif', type: 'image/gif', first: PIXEL, start: 0, lines: 0 },
    { inline: cid },
  )
  const html = letter.text('html')
  // Only where the text is readable as it stands; in base64 the picture is simply not referred to.
  const shown = { ...html, body: html.body.replace('</body>', `<img src="cid:${cid}"></body>`) }
  const inner = multipart('related', [shown, image], {
    boundary: letter.boundary(),
    parameters: '; type="text/html"',
  })
  return multipart('alternative', [letter.text(), inner], { boundary: letter.boundary() })
}
