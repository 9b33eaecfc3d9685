/** Address lists of headers that come decoded. One pass; what is no address is left out. */
import { oneLine } from '../../../search/extract/clean-text.ts'
import type { Mailbox } from '../contract.ts'
import { withoutInvisible } from './invisible.ts'

const ADDRESSES_MAX = 200
const NAME_CHARS_MAX = 200
const LIST_CHARS_MAX = 20_000
/** What a header may carry without quotes or folding: everything else is refused rather than mended. */
const ADDRESS = /^[^\s@<>()[\]\\,;:"]{1,64}@[^\s@<>()[\]\\,;:"]{1,253}$/u

export function isAddress(text: string): boolean {
  return ADDRESS.test(text) && !hasControls(text)
}

export function mailboxesOf(list: string): Mailbox[] {
  const found: Mailbox[] = []
  for (const entry of entriesOf(list.slice(0, LIST_CHARS_MAX))) {
    const mailbox = mailboxOf(entry)
    if (mailbox) found.push(mailbox)
    if (found.length >= ADDRESSES_MAX) break
  }
  return found
}

/** Split at commas and semicolons that stand in no quotes, no comment and no angle brackets. */
function* entriesOf(list: string): Generator<string> {
  let [from, isQuoted, isAngle] = [0, false, false]
  for (let at = 0; at < list.length; at++) {
    const char = list[at]
    if (char === '\\') at += 1
    else if (char === '"') isQuoted = !isQuoted
    else if (isQuoted) continue
    else if (char === '<') isAngle = true
    else if (char === '>') isAngle = false
    else if ((char === ',' || char === ';') && !isAngle) {
      yield list.slice(from, at)
      from = at + 1
    }
  }
  yield list.slice(from)
}

function mailboxOf(entry: string): Mailbox | undefined {
  const open = entry.lastIndexOf('<')
  const close = open < 0 ? -1 : entry.indexOf('>', open)
  const address = (
    open < 0 ? entry.replace(/^.*:/, '') : entry.slice(open + 1, close < 0 ? undefined : close)
  )
    .replace(/\([^()]*\)/g, '')
    .trim()
  if (!isAddress(address)) return undefined
  const name = open < 0 ? (/\(([^()]*)\)/.exec(entry)?.[1] ?? '') : entry.slice(0, open)
  const bare = name
    .trim()
    .replace(/^"(.*)"$/s, '$1')
    .replace(/\\(.)/gs, '$1')
  return { name: oneLine(withoutInvisible(bare).text, NAME_CHARS_MAX), address }
}

function hasControls(text: string): boolean {
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code < 0x21 || (code >= 0x7f && code <= 0xa0)) return true
  }
  return false
}
