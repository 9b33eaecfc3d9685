/** Who writes: friends and colleagues with languages of their own, and senders of newsletters. */
import { below, oneOf, streamOf, weighted } from './generate-chance.ts'
import { encodedWords } from './generate-charsets.ts'
import { LANGUAGE_SHARES, type Language, WORDINGS } from './generate-words.ts'

const PEOPLE = 300
const LISTS = 40

export type Person = {
  address: string
  domain: string
  language: Language
  /** The header value, already encoded: `=?utf-8?Q?...?= <j.weiss@example.net>`. */
  mailbox: string
  isList: boolean
}

const DOMAINS = ['example.com', 'example.org', 'example.net', 'mail.example', 'post.example', 'firma.example']
const LIST_NAMES = [
  'Harbour Weekly',
  'Kettle & Co',
  'Rail Offers',
  'Open Lecture Series',
  'The Green Shed',
  'Parcel Desk',
]

export function peopleOf(seed: number): Person[] {
  const random = streamOf(seed, 0, 0x9e0)
  return Array.from({ length: PEOPLE + LISTS }, (_, at) => {
    // Some newsletters among the people who write most.
    if (at % 9 === 4 || at >= PEOPLE) return listSender(at)
    const language = weighted(random, LANGUAGE_SHARES)
    const [name, spelled] = oneOf(random, WORDINGS[language].names)
    const domain = oneOf(random, DOMAINS)
    const address = `${spelled}${at > 20 ? at : ''}@${domain}`
    const charset = oneOf(
      random,
      WORDINGS[language].charsets.filter((one) => one !== 'us-ascii'),
    )
    const shown = encodedWords(name, { charset, as: below(random, 2) ? 'B' : 'Q' })
    return { address, domain, language, mailbox: `${quotedIfNeeded(shown)} <${address}>`, isList: false }
  })
}

function listSender(at: number): Person {
  const name = LIST_NAMES[at % LIST_NAMES.length]!
  const domain = `news${at}.example`
  const address = `no-reply@${domain}`
  return { address, domain, language: 'en', mailbox: `"${name} ${at}" <${address}>`, isList: true }
}

function quotedIfNeeded(name: string): string {
  return /^[A-Za-z0-9 =?_*\r\n+/-]+$/.test(name) ? name : `"${name}"`
}
