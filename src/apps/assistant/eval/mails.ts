/**
 * Mails with the category that a person gave them, written for this project. Half of them, chosen by a hash of their
 * name, is what the classifier without a model learns from; the other half is only ever asked about. Those of `later`
 * were written when the words of local/cues.ts stood, and are only asked about: they tell best what a stranger's mail
 * would meet.
 */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { CATEGORIES, type VisibleMessage } from '../contract.ts'
import { visibleMessage } from '../text/visible.ts'

const labelledMail = z.strictObject({
  id: z.string(),
  category: z.enum(CATEGORIES),
  language: z.string(),
  from: z.string(),
  subject: z.string(),
  text: z.string(),
  /** It has the headers of bulk mail. */
  isBulk: z.boolean().default(false),
})
export type LabelledMail = z.output<typeof labelledMail>

export const MAIL_FILES = ['en', 'de', 'fr', 'es', 'other', 'later'] as const
const RECEIVED_MS = Date.UTC(2026, 10, 16, 9)

export function labelledMails(): LabelledMail[] {
  return MAIL_FILES.flatMap((name) => {
    const lines = readFileSync(join(import.meta.dirname, 'mails', `${name}.jsonl`), 'utf8')
      .trim()
      .split('\n')
    return lines.map((line) => labelledMail.parse(JSON.parse(line)))
  })
}

export type Half = 'train' | 'test'

export function isLater({ id }: { id: string }): boolean {
  return id.startsWith('later-')
}

export function halfOf({ id }: { id: string }): Half {
  return !isLater({ id }) && hashOf(id) % 2 === 0 ? 'train' : 'test'
}

export function hashOf(text: string): number {
  return createHash('sha256').update(text).digest().readUInt32BE(0)
}

export function mailMessage(mail: LabelledMail): VisibleMessage {
  const bulk: [string, string][] = [
    ['List-Unsubscribe', '<mailto:leave@lists.example>'],
    ['Precedence', 'bulk'],
  ]
  return visibleMessage({
    id: mail.id,
    threadId: `thread-${mail.id}`,
    labelIds: ['INBOX'],
    internalMs: RECEIVED_MS,
    headers: [
      ['From', mail.from],
      ['To', 'Jonas Weber <jonas@weber.example>'],
      ['Subject', mail.subject],
      ['Message-ID', `<${mail.id}@mail.example>`],
      ...(mail.isBulk ? bulk : []),
    ],
    parts: [
      {
        mimeType: 'text/plain',
        fileName: '',
        headers: [['Content-Type', 'text/plain; charset=utf-8']],
        bytes: Buffer.from(mail.text),
        sizeBytes: Buffer.byteLength(mail.text),
      },
    ],
  })
}
