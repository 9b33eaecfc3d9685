/**
 * How a mail is read before an agent sees it.
 *
 *   default   as it stands
 *   helpdesk  mail that somebody forwarded, by hand or by a helpdesk such as Crisp or Zendesk: who wrote it first, and
 *             what they wrote
 *
 * What is found is told to the agent and chooses its route; it is never whom a draft goes to, because anybody can write
 * such lines. Each line is looked at once, and the work is bounded.
 */
import type { Mailbox, VisibleMessage } from '../contract.ts'
import type { AgentProfile } from './profiles.ts'

export type Original = {
  from: Mailbox
  /** '' where the forwarded part names none. */
  subject: string
  text: string
  /** Said by a header of the forwarding service, or by lines in the text. */
  by: 'header' | 'text'
}

export type Prepared = { from: Mailbox; subject: string; text: string; forwardedBy: Mailbox | undefined }

const LINES_MAX = 2_000
const LINE_CHARS_MAX = 1_000
/** A block of lines such as `From:` and `Date:` ends within these. */
const BLOCK_LINES_MAX = 14

/** Services that forward say who wrote first. */
const ORIGINAL_HEADERS = ['x-original-from', 'x-original-sender', 'x-forwarded-from'] as const

export function prepare(
  preprocessor: AgentProfile['preprocessor'],
  message: Pick<VisibleMessage, 'from' | 'subject' | 'text' | 'headers'>,
): Prepared {
  const plain = { from: message.from, subject: message.subject, text: message.text, forwardedBy: undefined }
  if (preprocessor === 'default') return plain
  const original = originalSender(message)
  if (!original) return plain
  const { from, subject, text } = original
  return { from, subject: subject || message.subject, text, forwardedBy: message.from }
}

/** Undefined of mail that is not forwarded. */
export function originalSender(
  message: Pick<VisibleMessage, 'from' | 'text' | 'headers'>,
): Original | undefined {
  const lines = linesOf(message.text)
  const inText = forwardedBlock(lines) ?? helpdeskFields(lines)
  if (inText) return inText
  for (const name of ORIGINAL_HEADERS) {
    const from = mailboxIn(message.headers.find(([one]) => one === name)?.[1] ?? '')
    const isOther = from && from.address.toLowerCase() !== message.from.address.toLowerCase()
    if (isOther) return { from, subject: '', text: belowReplyLine(lines), by: 'header' }
  }
  return undefined
}

/** In the languages in which mail programs write them; without case. */
const FROM_LABELS = words(
  'from|von|de|da|van|od|från|fra|lähettäjä|feladó|kimden|от|від|отправитель|από|差出人|发件人|寄件者|寄件人|보낸사람|보낸 사람|من|מאת|จาก|expéditeur|remitente|mittente|remetente|absender|afzender|nadawca|odesílatel|odosielateľ|de la|expeditor|requester|sender|email|e-mail|customer|visitor|user email|kunde|client',
)
const SUBJECT_LABELS = words(
  'subject|betreff|objet|asunto|oggetto|assunto|onderwerp|předmět|predmet|temat|тема|ämne|emne|aihe|tárgy|konu|subiect|θέμα|件名|主题|主旨|제목|الموضوع|נושא',
)
const OTHER_LABELS = words(
  'date|sent|to|cc|bcc|reply-to|datum|gesendet|an|kopie|envoyé|à|copie|envoyé à|fecha|enviado|enviado el|enviado em|para|data|inviato|a|verzonden|aan|odesláno|komu|kopia|kopie|wysłano|do|data wysłania|дата|отправлено|кому|копия|надіслано|skickat|till|sendt|til|lähetetty|vastaanottaja|küldve|címzett|tarih|gönderildi|kime|trimis|către|ημερομηνία|προς|送信日時|日付|宛先|发送时间|日期|收件人|抄送|寄件日期|收件者|날짜|받는사람|받는 사람|보낸 날짜|التاريخ|إلى|תאריך|אל|name|ticket|conversation|website|phone|segments|country|ip|browser',
)

/** What stands alone on a line before a forwarded mail. */
const MARKERS = words(
  "forwarded message|begin forwarded message|original message|forwarded email|weitergeleitete nachricht|anfang der weitergeleiteten nachricht|ursprüngliche nachricht|originalnachricht|message transféré|début du message transféré|message d’origine|message d'origine|mensaje reenviado|inicio del mensaje reenviado|mensaje original|messaggio inoltrato|inizio messaggio inoltrato|messaggio originale|mensagem encaminhada|início da mensagem encaminhada|mensagem original|doorgestuurd bericht|begin doorgestuurd bericht|oorspronkelijk bericht|přeposlaná zpráva|původní zpráva|preposlaná správa|pôvodná správa|wiadomość przekazana|przekazana wiadomość|wiadomość oryginalna|пересылаемое сообщение|пересланное сообщение|исходное сообщение|переслане повідомлення|vidarebefordrat meddelande|ursprungligt meddelande|videresendt meddelelse|videresendt melding|oprindelig meddelelse|välitetty viesti|alkuperäinen viesti|továbbított üzenet|eredeti üzenet|iletilen ileti|iletilen mesaj|özgün ileti|mesaj redirecționat|προωθημένο μήνυμα|転送メッセージ|元のメッセージ|转发的邮件|原始邮件|轉寄郵件|原始郵件|전달된 메시지|원본 메시지|رسالة معاد توجيهها|הודעה שהועברה",
)

function words(list: string): ReadonlySet<string> {
  return new Set(list.split('|'))
}

function linesOf(text: string): string[] {
  return text.split(/\r\n|\r|\n/, LINES_MAX).map((line) =>
    line
      .slice(0, LINE_CHARS_MAX)
      .replace(/^[\s>]{1,100}/, '')
      .trimEnd(),
  )
}

/** `---------- Forwarded message ---------`, or a block of `From:`, `Sent:`, `To:` as Outlook writes it. */
function forwardedBlock(lines: readonly string[]): Original | undefined {
  for (let at = 0; at < lines.length; at++) {
    const isMarked = MARKERS.has(bare(lines[at] ?? ''))
    const isBlock = FROM_LABELS.has(labelOf(lines[at] ?? '')?.label ?? '')
    if (!isMarked && !isBlock) continue
    const block = blockFrom(lines, isMarked ? at + 1 : at)
    // One label alone may be a sentence: `From: today on`.
    if (block && (isMarked || block.labels >= 3)) return originalOf(lines, block)
  }
  return undefined
}

/** What is said field by field, as helpdesks do in their notices; the text is what stands below them, or above. */
function helpdeskFields(lines: readonly string[]): Original | undefined {
  const reply = lines.findIndex(isReplyLine)
  const isHelpdesk =
    reply >= 0 ||
    lines.some((line) => /\b(?:crisp|zendesk|freshdesk|intercom|helpscout|help scout)\b/i.test(line))
  if (!isHelpdesk) return undefined
  const at = lines.findIndex((line) => {
    const found = labelOf(line)
    return found !== undefined && FROM_LABELS.has(found.label) && mailboxIn(found.value) !== undefined
  })
  if (at < 0) return undefined
  // Fields may stand before the one that names the sender.
  let first = at
  while (first > 0 && at - first < BLOCK_LINES_MAX && labelOf(lines[first - 1] ?? '')) first -= 1
  const block = blockFrom(lines, first)
  if (!block) return undefined
  const original = originalOf(lines, block)
  if (original.text !== '') return original
  const above = lines.slice(Math.max(0, reply + 1), first)
  return { ...original, text: above.join('\n').trim() }
}

/** Zendesk's `##- Please type your reply above this line -##`, in whatever language. */
function isReplyLine(line: string): boolean {
  return line.startsWith('##-') && line.endsWith('-##')
}

function belowReplyLine(lines: readonly string[]): string {
  const at = lines.findIndex(isReplyLine)
  return lines
    .slice(at + 1)
    .join('\n')
    .trim()
}

type Block = { from: Mailbox; subject: string; labels: number; endAt: number }

function originalOf(lines: readonly string[], { from, subject, endAt }: Block): Original {
  return { from, subject, text: lines.slice(endAt).join('\n').trim(), by: 'text' }
}

function blockFrom(lines: readonly string[], start: number): Block | undefined {
  let from: Mailbox | undefined
  let subject = ''
  let labels = 0
  let at = start
  for (; at < lines.length && at - start < BLOCK_LINES_MAX; at++) {
    const line = lines[at] ?? ''
    if (line === '') {
      // Blank lines stand before a block, in some programs, and always behind it.
      if (labels > 0) break
      continue
    }
    const found = labelOf(line)
    const isKnown = found && [FROM_LABELS, SUBJECT_LABELS, OTHER_LABELS].some((set) => set.has(found.label))
    if (!isKnown) {
      // The rest of a long line that was folded.
      if (labels > 0 && labels < 8 && !from) continue
      break
    }
    labels += 1
    if (FROM_LABELS.has(found.label)) from ??= mailboxIn(found.value)
    if (SUBJECT_LABELS.has(found.label)) subject ||= found.value
  }
  return from && { from, subject, labels, endAt: at }
}

const LABEL_CHARS_MAX = 30

function labelOf(line: string): { label: string; value: string } | undefined {
  const at = line.slice(0, LABEL_CHARS_MAX + 2).search(/[:：]/)
  if (at < 1) return undefined
  const label = line.slice(0, at).replaceAll('*', '').replaceAll('\u00a0', ' ').trim().toLowerCase()
  return {
    label,
    value: line
      .slice(at + 1)
      .replaceAll('*', '')
      .trim(),
  }
}

/** Without what frames it: dashes, stars, underscores, a colon. */
function bare(line: string): string {
  if (line.length > 100) return ''
  return line.replaceAll(/^[\s\-–—_=*#]+|[\s\-–—_=*#:：]+$/g, '').toLowerCase()
}

const ADDRESS = /[^\s<>"'()[\]:;,@]{1,64}@[^\s<>"'()[\]:;,@]{1,253}/

/** `Ann Lee <ann@example.com>`, `ann@example.com`, `Ann Lee [mailto:ann@example.com]`. */
function mailboxIn(value: string): Mailbox | undefined {
  const short = value.slice(0, 500)
  const found = short.includes('@') ? ADDRESS.exec(short) : null
  if (!found?.[0].includes('.')) return undefined
  const before = short.slice(0, found.index).replace(/(?:<|\[)?(?:mailto:)?\s*$/i, '')
  return { name: before.replaceAll(/["<[\]]/g, '').trim(), address: found[0].replace(/\.$/, '') }
}
