/**
 * What the simulated model says by itself: it sorts and answers mail by a few words of it, always the same for the same
 * prompt, and says of all that it writes that it is simulated. No intelligence is claimed: it makes tests and the demo
 * run without a model.
 */
import type { Asked, AskedTool, JsonSchema, ScriptedAnswer } from './exchange.ts'

export const SIGNATURE = '(Written by the simulated model.)'

const DEPTH_MAX = 6
const CALLS_MAX = 3

/** The mail that a prompt is about, as far as its marks and lines say so, and what the user wants of an answer. */
export type PromptMail = { subject: string; from: string; text: string; instruction: string; signOff: string }

export function sensibleAnswer(asked: Asked): ScriptedAnswer {
  const mail = mailIn(asked)
  const call = nextCall(asked, mail)
  if (call) return { toolCalls: [call] }
  if (!asked.json) return { text: asked.tools.length > 0 ? done(asked) : draftFor(mail) }
  return { json: filled(asked.json.schema ?? {}, mail, { name: '', depth: 0 }) }
}

/** How the assistant marks what others wrote: the last such part of a prompt is the mail in question. */
const MARKED = [
  /^=====(\w+)===== [^\n]*\n([\s\S]*?)\n=====\1===== end$/gm,
  /^<quoted-(\w+)>\n([\s\S]*?)\n<\/quoted-\1>$/gm,
]

export function mailIn({ messages }: Pick<Asked, 'messages'>): PromptMail {
  const whole = messages.findLast(({ role }) => role === 'user')?.text ?? ''
  const system = messages.find(({ role }) => role === 'system')?.text ?? ''
  const text =
    MARKED.map((mark) => [...whole.matchAll(mark)].at(-1)?.[2]).find((one) => one !== undefined) ?? whole
  const line = (name: string): string =>
    new RegExp(`^${name}: *(.{1,300})$`, 'im').exec(text)?.[1]?.trim() ?? ''
  return {
    subject: line('subject'),
    from: line('from'),
    text,
    instruction: quotedAfter(system, /in their own words:\s*(".*")$/m),
    signOff: quotedAfter(system, /^End with: (".*")$/m),
  }
}

function quotedAfter(text: string, pattern: RegExp): string {
  try {
    return String(JSON.parse(pattern.exec(text)?.[1] ?? '""'))
  } catch {
    return ''
  }
}

/** In a subject they say what the mail is; in a text they are things that people talk about. */
const BILL = /\b(?:invoice|rechnung|facture)\b/i
const SIGNS: readonly [category: string, sign: RegExp][] = [
  ['payment_request', /\b(?:amount due|payment (?:is )?due|overdue|IBAN|please pay)\b/i],
  [
    'fyi',
    /\bunsubscribe\b|\bnewsletter\b|no[- ]?reply@|\bhas shipped\b|\bno (?:reply|answer|action) (?:is )?needed\b/i,
  ],
  [
    'action_required',
    /\b(?:please (?:sign|approve|submit|complete|renew|upload|fill)|action required|deadline)\b/i,
  ],
  ['waiting', /\b(?:(?:i|we)(?:'ll| will) (?:get|come) back to you|ich melde mich)\b/i],
  ['needs_response', /\?|\b(?:let me know|please (?:reply|answer|confirm)|could you|can you)/i],
]

export function categoryOf({ subject, text }: PromptMail): string {
  if (BILL.test(subject)) return 'payment_request'
  const body = `${subject}\n${text}`
  return SIGNS.find(([, sign]) => sign.test(body))?.[0] ?? 'fyi'
}

export function draftFor({ subject, from, instruction, signOff }: PromptMail): string {
  const name = /^"?([\p{L}][\p{L}'-]*)/u.exec(from)?.[1] ?? ''
  const about = subject.replace(/^(?:(?:re|fwd?|aw|wg):\s*)+/i, '')
  return [
    name ? `Hello ${name},` : 'Hello,',
    '',
    `thank you for your message${about ? ` about "${about}"` : ''}. [TODO: the answer itself]`,
    ...(instruction ? ['', `[TODO: as you asked: ${instruction}]`] : []),
    ...(signOff ? ['', signOff] : []),
    '',
    SIGNATURE,
  ].join('\n')
}

/** A value that fits the schema, made of the mail where the name of a field says what it is for. */
function filled(schema: JsonSchema, mail: PromptMail, at: { name: string; depth: number }): unknown {
  const { name, depth } = at
  if (depth > DEPTH_MAX) return null
  if ('const' in schema) return schema.const
  const options = [schema.anyOf, schema.oneOf].find(Array.isArray) as JsonSchema[] | undefined
  if (options) return filled(options[0] ?? {}, mail, { name, depth: depth + 1 })
  if (Array.isArray(schema.enum)) return chosen(schema.enum, mail)
  switch (Array.isArray(schema.type) ? schema.type[0] : schema.type) {
    case 'object':
      return Object.fromEntries(
        Object.entries((schema.properties ?? {}) as Record<string, JsonSchema>).map(([key, one]) => [
          key,
          filled(one, mail, { name: key, depth: depth + 1 }),
        ]),
      )
    case 'array':
      return /quer|search/i.test(name) ? queriesFor(mail) : []
    case 'number':
    case 'integer':
      return numberFor(schema, name)
    case 'boolean':
      return false
    default:
      return textFor(mail, name)
  }
}

function chosen(values: readonly unknown[], mail: PromptMail): unknown {
  const category = categoryOf(mail)
  return values.includes(category) ? category : values[0]
}

function numberFor({ minimum, type }: JsonSchema, name: string): number {
  if (/confidence|score|probability/i.test(name)) return 0.8
  return typeof minimum === 'number' ? minimum : type === 'integer' ? 0 : 0.5
}

function textFor(mail: PromptMail, name: string): string {
  if (/draft|reply|body|^text$|answer|message/i.test(name)) return draftFor(mail)
  if (/language|locale/i.test(name)) return languageOf(mail.text)
  if (/style|tone/i.test(name)) return ''
  if (/quer|search/i.test(name)) return queriesFor(mail)[0] ?? ''
  return 'Decided by the simulated model, by words of the mail.'
}

function languageOf(text: string): string {
  if (/\b(?:und|nicht|bitte|danke|ich|wir)\b/i.test(text)) return 'de'
  return /\b(?:merci|bonjour|vous|nous|pour)\b/i.test(text) ? 'fr' : 'en'
}

function queriesFor({ subject, from }: PromptMail): string[] {
  const words = subject.match(/[\p{L}\p{N}]{4,}/gu) ?? []
  const address = /[\w.+-]+@[\w.-]+/.exec(from)?.[0]
  return [words.slice(0, 4).join(' '), address ?? ''].filter(Boolean)
}

/** As an agent: looks something up, drafts an answer, and is done. Each tool once. */
function nextCall(asked: Asked, mail: PromptMail): { name: string; input: unknown } | undefined {
  const called = asked.messages.flatMap(({ toolCalls }) => toolCalls.map(({ name }) => name))
  if (called.length >= CALLS_MAX) return undefined
  const tool = [/search/i, /draft/i]
    .map((sign) => asked.tools.find(({ name }) => sign.test(name)))
    .find((one): one is AskedTool => one !== undefined && !called.includes(one.name))
  return tool && { name: tool.name, input: filled(tool.schema, mail, { name: '', depth: 0 }) }
}

function done({ messages }: Asked): string {
  const calls = messages.reduce((sum, { toolCalls }) => sum + toolCalls.length, 0)
  return `Done, after ${calls} ${calls === 1 ? 'call' : 'calls'} of tools. ${SIGNATURE}`
}
