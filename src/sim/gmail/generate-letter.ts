/**
 * One generated message in the making: who writes to whom about what, and the usual parts. Everything is
 * a string of bytes (see generate-charsets.ts). The same plan gives the same letter.
 */
import type { Random } from '../../base/random.ts'
import { mixed, oneOf, skewed, zipf } from './generate-chance.ts'
import {
  type Document,
  multipart,
  numberedDocument,
  PAYLOAD_LINES_MAX,
  type Part,
  textPart,
} from './generate-parts.ts'
import type { Person } from './generate-people.ts'
import { asciiLine, formFor, preparedText, type TextForm } from './generate-texts.ts'
import { codeName } from './generate-words.ts'

const SHARED_DOCUMENTS = 400
const CODE_NAMES = 4096
const PARAGRAPHS_MAX = 400

export type LetterPlan = {
  index: number
  random: Random
  owner: string
  /** The other side of the conversation. */
  person: Person
  fromOwner: boolean
  copied: readonly Person[]
  /** Encoded already. */
  subject: string
  sentMs: number
  messageId: string
  /** Message-IDs of the thread so far, oldest first, without brackets. */
  references: readonly string[]
  /** 1 is the usual size of bodies and attachments. */
  scale: number
  headers: 'full' | 'few'
}

/** What a kind of message changes in the usual headers; null leaves a header out. */
export type EnvelopeChanges = {
  from?: string | null
  subject?: string | null
  date?: string | null
  messageId?: string | null
  extra?: readonly string[]
}

export class Letter {
  readonly plan: LetterPlan
  readonly random: Random
  form: TextForm
  #boundaries = 0

  constructor(plan: LetterPlan) {
    this.plan = plan
    this.random = plan.random
    this.form = formFor(plan.random, plan.person.language)
  }

  /** A whole message around one part. */
  message(content: Part, changes: EnvelopeChanges = {}): string {
    return `${this.envelope(changes)}\r\n${content.head}\r\n\r\n${content.body}`
  }

  /** All headers but those of the content, without the last line end. */
  envelope(changes: EnvelopeChanges = {}): string {
    const { plan } = this
    const owner = `<${plan.owner}>`
    const lines = plan.headers === 'full' && !plan.fromOwner ? this.#transport() : []
    const put = (name: string, usual: string, change: string | null | undefined): void => {
      if (change !== null) lines.push(`${name}: ${change ?? usual}`)
    }
    put('Date', mailDate(plan.sentMs, zoneOf(plan.person)), changes.date)
    put('From', plan.fromOwner ? owner : plan.person.mailbox, changes.from)
    lines.push(`To: ${plan.fromOwner ? plan.person.mailbox : owner}`)
    if (plan.copied.length > 0) lines.push(`Cc: ${plan.copied.map(({ mailbox }) => mailbox).join(',\r\n ')}`)
    put('Subject', plan.subject, changes.subject)
    put('Message-ID', `<${plan.messageId}>`, changes.messageId)
    if (plan.references.length > 0) {
      lines.push(`In-Reply-To: <${plan.references.at(-1)}>`)
      lines.push(`References: ${plan.references.map((id) => `<${id}>`).join('\r\n ')}`)
    }
    lines.push(...(changes.extra ?? []), 'MIME-Version: 1.0')
    return lines.join('\r\n')
  }

  #transport(): string[] {
    const { person, owner, sentMs, index } = this.plan
    const at = mailDate(sentMs + 2_000, '-0800')
    const id = mixed(index, 0x5e7).toString(36)
    const received = [
      `Delivered-To: ${owner}`,
      `Received: by 2002:a05:6214:${id.slice(0, 4)}:0:0:0:0 with SMTP id ${id}csp${index};\r\n        ${at}`,
      `Return-Path: <${person.address}>`,
      `Received: from mx${index % 7}.${person.domain} (mx.${person.domain}. [203.0.113.${index % 250}])\r\n        by mx.example.com with ESMTPS id ${id}si${index}.7\r\n        for <${owner}>;\r\n        ${at}`,
      `Authentication-Results: mx.example.com;\r\n       dkim=pass header.i=@${person.domain};\r\n       spf=pass smtp.mailfrom=${person.address}`,
    ]
    if (person.isList) {
      received.push(
        `List-Id: <list.${person.domain}>`,
        `List-Unsubscribe: <https://${person.domain}/out?u=${id}>`,
        'Precedence: bulk',
      )
    }
    return received
  }

  boundary(): string {
    this.#boundaries += 1
    return `=_${mixed(this.plan.index, this.#boundaries, 0xb0d).toString(36)}_${this.#boundaries}`
  }

  /** A body of about this many paragraphs, with a line that no other message has. */
  body(as: 'plain' | 'html', paragraphs = this.paragraphs()): string {
    const text = preparedText(this.form, as)
    let body = text.start
    for (let left = paragraphs; left > 0; left -= 1) body += oneOf(this.random, text.paragraphs)
    const unique = mixed(this.plan.index, 0x11e).toString(36)
    const line = `Ref. ${this.plan.index}-${unique} ${codeName(zipf(this.random, CODE_NAMES))}`
    return (
      body +
      text.closing +
      asciiLine(as === 'html' ? `<p>${line}</p>\r\n` : `\r\n${line}\r\n`, this.form) +
      text.end
    )
  }

  paragraphs(median = 5): number {
    const wanted = skewed(this.random, { median, spread: 0.8, max: PARAGRAPHS_MAX }) * this.plan.scale
    return Math.min(PARAGRAPHS_MAX, Math.round(wanted))
  }

  text(as: 'plain' | 'html' = 'plain', paragraphs?: number): Part {
    const { charset, encoding } = this.form
    return textPart(as, { body: this.body(as, paragraphs), charset, encoding })
  }

  alternative(median?: number): Part {
    const paragraphs = this.paragraphs(median)
    const parts = [this.text('plain', paragraphs), this.text('html', paragraphs)]
    return multipart('alternative', parts, { boundary: this.boundary() })
  }

  /** Mostly one of those that many messages carry, otherwise its own. */
  document(): Document {
    const isShared = this.random() < 0.6
    const number = isShared ? zipf(this.random, SHARED_DOCUMENTS) : SHARED_DOCUMENTS + this.plan.index
    const hash = mixed(number, 0x512e)
    const size = skewed(seeded(hash), { median: 260, spread: 1.1, max: PAYLOAD_LINES_MAX })
    return numberedDocument(number, Math.ceil(size * this.plan.scale))
  }
}

/** Four draws from one number: the size of a document must not depend on who sends it. */
function seeded(hash: number): Random {
  let draw = 0
  return () => {
    draw += 1
    return mixed(hash, draw) / 2 ** 32
  }
}

export function mailDate(ms: number, zone: string): string {
  const sign = zone.startsWith('-') ? -1 : 1
  const offsetMs = sign * (Number(zone.slice(1, 3)) * 60 + Number(zone.slice(3))) * 60_000
  return new Date(ms + offsetMs).toUTCString().replace('GMT', zone)
}

const ZONES: Record<string, string> = {
  en: '-0500',
  de: '+0100',
  fr: '+0100',
  es: '+0200',
  pl: '+0100',
  ru: '+0300',
  ja: '+0900',
  zh: '+0800',
  ko: '+0900',
  ar: '+0200',
}

function zoneOf(person: Person): string {
  return ZONES[person.language] ?? '+0000'
}

export function someone(random: Random, people: readonly Person[]): Person {
  return people[zipf(random, people.length)]!
}
