/** Which lines of a text are quoted from earlier messages. Line by line, so that no text takes more than linear time. */

/** Longer lines announce nothing. */
const LINE_CHARS_MAX = 300

const ATTRIBUTION = [
  /^(?:on|am|le|el|il|em|op|den|dne|w dniu|på|pada|в|чт|пн|вт|ср|пт|сб|вс)\b.{3,280}(?:wrote|schrieb|a écrit|escribió|ha scritto|escreveu|schreef|skrev|napsal(?:\(a\))?|napisał(?:\(a\))?|пишет|написал(?:а)?)\b.{0,80}:?$/iu,
  /^.{3,280}(?:wrote|schrieb|a écrit|escribió|ha scritto|escreveu|schreef|skrev)\s?:$/iu,
]
/** Everything from here on is an earlier message. */
const SEPARATOR =
  /^[-_\s]*(?:original message|ursprüngliche nachricht|message d'origine|message original|mensaje original|messaggio originale|mensagem original|oorspronkelijk bericht)[-_\s]*$/iu
const FORWARD =
  /^[-_\s]*(?:begin forwarded message|forwarded message|weitergeleitete nachricht|message transféré|mensaje reenviado|messaggio inoltrato)[-_:\s]*$/iu
const RULE = /^_{10,}$/
const FROM_LINE = /^\*?(?:from|von|de|da|van|från|od)\s?:\*?\s\S/iu
const SENT_LINE =
  /^\*?(?:sent|date|gesendet|datum|envoyé|fecha|enviado(?: el)?|inviato|verzonden|to|an|à|para|a)\s?:\*?\s?\S/iu
const FORWARD_SUBJECT = /^\s*(?:fwd?|wg|tr|rv|i|enc|doorst)\s?:/i

export function isForwardSubject(subject: string): boolean {
  return FORWARD_SUBJECT.test(subject)
}

/** The text without what is quoted. What is forwarded is new to whoever it is forwarded to. */
export function withoutQuotes(text: string, { isForward }: { isForward: boolean }): string {
  const lines = text.split('\n')
  const kept: string[] = []
  for (let at = 0; at < lines.length; at++) {
    const line = lines[at]!.trim()
    if (line.startsWith('>')) {
      dropAttribution(kept)
      continue
    }
    if (!isForward && beginsEarlier(lines, at)) break
    kept.push(lines[at]!)
  }
  // The last line may announce a quote that a program has folded away.
  if (kept.length > 1 && isAttribution(kept.at(-1)!)) kept.pop()
  return kept
    .join('\n')
    .replace(/\n{3,}/g, '\n\n')
    .trim()
}

function beginsEarlier(lines: readonly string[], at: number): boolean {
  const line = lines[at]!.trim()
  if (line.length > LINE_CHARS_MAX) return false
  if (SEPARATOR.test(line)) return true
  if (FORWARD.test(line)) return false
  const isHead = RULE.test(line) ? nextOf(lines, at) : FROM_LINE.test(line) ? at : -1
  if (isHead < 0 || !FROM_LINE.test(lines[isHead]!.trim().slice(0, LINE_CHARS_MAX))) return false
  const next = nextOf(lines, isHead)
  return next >= 0 && SENT_LINE.test(lines[next]!.trim().slice(0, LINE_CHARS_MAX))
}

/** At most two lines further down, past one that is empty. */
function nextOf(lines: readonly string[], at: number): number {
  for (let next = at + 1; next <= at + 2 && next < lines.length; next++) {
    if (lines[next]!.trim() !== '') return next
  }
  return -1
}

/** An announcement may be folded over two lines. */
function dropAttribution(kept: string[]): void {
  while (kept.length > 0 && kept.at(-1)!.trim() === '') kept.pop()
  const last = kept.at(-1)
  if (last === undefined) return
  if (isAttribution(last)) kept.pop()
  else if (kept.length > 1 && /:\s*$/.test(last) && isAttribution(`${kept.at(-2)!.trim()} ${last.trim()}`)) {
    kept.splice(-2)
  } else if (!/^$/.test(last)) kept.push('')
}

function isAttribution(line: string): boolean {
  const text = line.trim()
  return text.length <= LINE_CHARS_MAX && ATTRIBUTION.some((pattern) => pattern.test(text))
}
