/**
 * Odd messages that are written down, in mail/odd/*.eml. Lines above `{usual}` stand in the place of the usual header of
 * that name, `{none}` leaves it out, lines below are added. `{text}` is the usual text with its headers, `{index}` the
 * number of the message; `\x00` is a byte. A body is written readable, whatever encoding its head declares.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { bytesIn, quotedPrintable } from './generate-charsets.ts'
import type { EnvelopeChanges, Letter } from './generate-letter.ts'

type Template = {
  /** None where the file is the whole message. */
  changes: EnvelopeChanges | undefined
  head: string
  body: string
}

const templates = new Map<string, Template>()

export function fromTemplate(name: string): (letter: Letter) => string {
  return (letter) => {
    let template = templates.get(name)
    if (!template) {
      template = readTemplate(readFileSync(join(import.meta.dirname, 'mail/odd', `${name}.eml`), 'utf8'))
      templates.set(name, template)
    }
    const { changes, head } = template
    const body = template.body.replaceAll('{index}', String(letter.plan.index))
    if (!changes) return body
    if (head === '') return letter.message(letter.text(), changes)
    return letter.message(
      { head, body: head.includes('quoted-printable') ? quotedPrintable(body) : body },
      changes,
    )
  }
}

function readTemplate(file: string): Template {
  const bytes = bytesIn(file.replaceAll(/\r?\n/g, '\r\n'), 'utf-8').replaceAll(/\\x(..)/g, (_, code) =>
    String.fromCharCode(Number.parseInt(code, 16)),
  )
  const [above, rest] = bytes.split('{usual}\r\n', 2)
  if (rest === undefined) return { changes: undefined, head: '', body: bytes }
  const end = rest.startsWith('\r\n') ? 0 : rest.indexOf('\r\n\r\n') + 2
  const below = rest.slice(0, end)
  const isHead = below.startsWith('Content-')
  const replaced = [...above!.matchAll(/^(.+?): (.*(?:\r\n .*)*)\r\n/gm)]
  const changes = replaced.map(([, name, value]) => [CHANGED[name!], value === '{none}' ? null : value])
  return {
    changes: { ...Object.fromEntries(changes), extra: below === '' || isHead ? [] : [below.slice(0, -2)] },
    head: isHead ? below.slice(0, -2) : '',
    body: rest.slice(end + 2),
  }
}

const CHANGED: Readonly<Record<string, keyof EnvelopeChanges>> = {
  From: 'from',
  Subject: 'subject',
  Date: 'date',
  'Message-ID': 'messageId',
}
