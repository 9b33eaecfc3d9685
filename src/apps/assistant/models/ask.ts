/**
 * Asks models for the assistant: within the cap of its user, on record, and only with answers that can be used.
 *
 *   reserve the worst case ──▶ ask ──▶ settle with what it cost
 *        │ over the cap                     │ the answer is no use: once more, with what is wrong about it
 *        ▼                                  ▼
 *   model-budget                       model-unusable
 *
 * Invariants:
 * - nothing is sent before its worst case is reserved: the cap holds over all processes on one ledger
 * - what may have been charged counts, to the worst case where nobody said how much it was
 * - what a service says of its own failures is never an answer
 */
import { createHash } from 'node:crypto'
import { z } from 'zod'
import type { AppPlace } from '../../../app/runtime.ts'
import { TidemarkError } from '../../../base/errors.ts'
import { type ModelClient, openModelClient } from '../../../cloud/models/client.ts'
import type {
  JsonSchema,
  ModelAnswer,
  ModelMessage,
  ModelTools,
  ToolCall,
} from '../../../cloud/models/conversation.ts'
import { ModelError } from '../../../cloud/models/errors.ts'
import {
  isConfigured,
  type ModelsSettings,
  mayCost,
  modelFor,
  priceOf,
} from '../../../cloud/models/settings.ts'
import { PURPOSES, type Purpose } from '../contract.ts'
import type { Cap, Day, ModelCalls, Settlement, Spending } from './store.ts'

/** `content` is another word for `text`. */
export type AskMessage = ModelMessage | { role: 'user' | 'assistant'; content: string }

export type Question<T> = {
  account: string
  purpose: Purpose
  /** What it is about, for the log. */
  threadId?: string | undefined
  system: string
  messages: readonly AskMessage[]
  /** The answer must fit it. */
  schema?: z.ZodType<T> | undefined
  /** With tools, an answer may consist of calls of them. */
  tools?: ModelTools | undefined
  maxTokens?: number | undefined
  /** Instead of the purpose's own. */
  model?: string | undefined
  temperature?: number | undefined
  signal: AbortSignal
}

export type Answer<T> = {
  /** Undefined where no schema was given, or tools are called. */
  value: T | undefined
  text: string
  toolCalls: readonly ToolCall[]
  /** Of all calls that it took. */
  usage: { inputTokens: number; outputTokens: number }
  costMicros: number
  model: string
  /** Of the call that brought it. */
  callId: number
}

export type Estimate = {
  model: string
  calls: number
  inputTokens: number
  outputTokens: number
  costMicros: number
  /** `calls`: by what such calls used lately. `sizes`: by the length of the texts alone. */
  basis: 'calls' | 'sizes'
  /** How many days it takes with the cap; undefined where a single call does not fit. */
  days: number | undefined
}

export type ModelsStatus = {
  provider: ModelsSettings['provider']
  /** Undefined: none is configured. */
  models: Readonly<Record<Purpose, string | undefined>>
  cap: Cap
  today: Day
}

export type Models = {
  ask<T = unknown>(question: Question<T>): Promise<Answer<T>>
  /** Undefined where no model is configured for it. */
  estimate(about: {
    account: string
    purpose: Purpose
    calls: number
    chars?: number
    /** Instead of the purpose's own. */
    model?: string | undefined
  }): Promise<Estimate | undefined>
  /** Whether sorting and drafting may cost money, or agents with these models; '' is the one for agents. */
  mayCost(agentModels: readonly string[]): boolean
  /** Names the settings and the cap with which it is asked, and tells nothing of them. */
  fingerprint(account: string): Promise<string>
  status(account: string): Promise<ModelsStatus>
  /** What was asked and answered, for people; undefined where it was not kept. */
  transcript(callId: number): Promise<{ account: string; text: string } | undefined>
  /** Once a day or so. */
  prune(): Promise<number>
}

export type ModelsInput = {
  place: Pick<AppPlace, 'config' | 'vault' | 'fetch' | 'clock'>
  store: ModelCalls
  /** Whose cap an account's questions count for: one for all mailboxes of a user. Each for itself if left out. */
  payerOf?: (account: string) => Promise<string>
}

const MICROS = 1_000_000
/** Around a message, and around all of them with their tools: what providers write there themselves. */
const OVERHEAD_TOKENS = { message: 16, call: 64, tools: 1_000 }
/** English has four characters to a token: what a prompt will be, not what it can be at worst. */
const CHARS_PER_TOKEN = 4
const SYSTEM_TOKENS = 500
const CHARS_USUAL = 4_000
const ANSWER_TOKENS: Readonly<Record<Purpose, number>> = { classify: 80, draft: 300, context: 60, agent: 400 }
/** When calls in flight are all that is in the way, they will have ended by then. */
const IN_FLIGHT_MS = 15_000
/** No call has more. */
const TOKENS_MAX = 100_000_000
const BAD_ANSWER_CHARS = 8_000
const TRANSCRIPT_CHARS_MAX = 400_000

export function openModels({ place, store, payerOf = async (account) => account }: ModelsInput): Models {
  const settings = (): ModelsSettings => place.config.models
  let opened: { key: string; client: ModelClient } | undefined
  const client = (): ModelClient => {
    const { provider, base_url, api_key, json, timeout_seconds } = settings()
    const key = JSON.stringify([provider, base_url, api_key, json, timeout_seconds])
    // Settings may change while the process runs.
    if (opened?.key !== key) {
      opened = {
        key,
        client: openModelClient({ settings: settings(), fetch: place.fetch, clock: place.clock }),
      }
    }
    return opened.client
  }
  const cap = (): Cap => {
    const { day_cost: cost, day_tokens: tokens } = settings()
    return { costMicros: cost > 0 ? Math.round(cost * MICROS) : null, tokens: tokens > 0 ? tokens : null }
  }
  return {
    ask: (question) =>
      ask({ settings: settings(), store, client, cap: cap(), payerOf, vault: place.vault }, question),
    estimate: (about) => estimate({ settings: settings(), store, cap: cap() }, about),
    mayCost: (agentModels) => {
      if (settings().provider === 'off') return false
      const usual = (['classify', 'draft', 'context'] as const).map((purpose) =>
        modelFor(settings(), purpose),
      )
      const agents = agentModels.map((model) => model || modelFor(settings(), 'agent'))
      return [...usual, ...agents].some((model) => model !== undefined && mayCost(settings(), model))
    },
    async fingerprint() {
      const text = JSON.stringify([settings(), cap()])
      return createHash('sha256').update(text).digest('hex').slice(0, 16)
    },
    async status(account) {
      const models = Object.fromEntries(PURPOSES.map((purpose) => [purpose, modelFor(settings(), purpose)]))
      return {
        provider: settings().provider,
        models: models as ModelsStatus['models'],
        cap: cap(),
        today: await store.day(await payerOf(account)),
      }
    },
    async transcript(callId) {
      const kept = await store.sealed(callId)
      return kept && { account: kept.account, text: place.vault.open(sealName(kept.account), kept.bytes) }
    },
    prune: () => store.prune(settings().keep_calls_days),
  }
}

type Tools = {
  settings: ModelsSettings
  store: ModelCalls
  client: () => ModelClient
  cap: Cap
  payerOf: (account: string) => Promise<string>
  vault: AppPlace['vault']
}

type Asking<T> = Omit<Question<T>, 'messages'> & {
  model: string
  messages: readonly ModelMessage[]
  jsonSchema: JsonSchema | undefined
  maxTokens: number
  payer: string
}

async function ask<T>(tools: Tools, question: Question<T>): Promise<Answer<T>> {
  const { settings } = tools
  const model =
    settings.provider === 'off' ? undefined : (question.model ?? modelFor(settings, question.purpose))
  if (model === undefined) throw noModel(question.purpose)
  if (!isConfigured(settings, model)) throw notConfigured(model)
  if (settings.provider !== 'openai-compatible' && settings.api_key === undefined)
    throw noKey(settings.provider)
  const asking: Asking<T> = {
    ...question,
    model,
    messages: question.messages.map(plainMessage),
    jsonSchema: question.schema && jsonSchemaOf(question.schema),
    maxTokens: question.maxTokens ?? settings.max_tokens,
    payer: await tools.payerOf(question.account),
  }
  const first = await callOnce(tools, asking, null)
  if (first.read.isUsable) return answerOf(asking, [first])
  const unusable = unusableAnswer(first.read.problem)
  // Whoever filters an answer filters the next one, too.
  if (first.answer.finish === 'filtered') throw unusable
  const again: Asking<T> = { ...asking, messages: [...asking.messages, ...repairOf(first)] }
  const second = await callOnce(tools, again, first.id).catch((error: unknown) => {
    // There was an answer, and there is no money for another: waiting would not make it a better one.
    throw error instanceof TidemarkError && error.code === 'model-budget' ? unusable : error
  })
  if (!second.read.isUsable) throw unusableAnswer(second.read.problem)
  return answerOf(asking, [first, second])
}

type Read<T> = { isUsable: true; value: T | undefined } | { isUsable: false; problem: string }
type Called<T> = { id: number; answer: ModelAnswer; used: Used; read: Read<T> }
type Used = { inputTokens: number; outputTokens: number; costMicros: number }

async function callOnce<T>(tools: Tools, asking: Asking<T>, repairs: number | null): Promise<Called<T>> {
  const { store, settings, cap } = tools
  const { account, payer, purpose, model, threadId = '' } = asking
  const worst = worstOf(settings, asking)
  const spending: Spending = { costMicros: worst.costMicros, tokens: worst.inputTokens + worst.outputTokens }
  const reserved = await store.reserve(
    { account, payer, threadId, purpose, model, repairs, worst: spending },
    cap,
  )
  if ('refused' in reserved) throw overBudget(store, { account, cap, spending, day: reserved.refused })
  const { id } = reserved
  const { system, messages, jsonSchema, tools: offered, maxTokens, temperature, signal } = asking
  let answer: ModelAnswer
  let isSent = false
  try {
    signal.throwIfAborted()
    isSent = true
    const request = { model, system, messages, tools: offered, maxTokens, temperature, signal }
    answer = await tools.client().ask({ ...request, schema: jsonSchema })
  } catch (thrown) {
    const used =
      isSent && mayHaveCost(thrown, signal) ? worst : { inputTokens: 0, outputTokens: 0, costMicros: 0 }
    const code = thrown instanceof TidemarkError ? (thrown.code ?? thrown.kind) : 'stopped'
    await store.settle(id, { outcome: 'failed', code, sealed: null, ...used })
    throw thrown
  }
  const read = readAnswer(answer, asking)
  const used = usedBy(settings, model, answer, worst)
  const settlement: Settlement = {
    outcome: read.isUsable ? 'ok' : 'unusable',
    code: read.isUsable ? '' : 'model-unusable',
    sealed: settings.keep_prompts === 'sealed' ? sealedTranscript(tools, asking, answer) : null,
    ...used,
  }
  await store.settle(id, settlement)
  return { id, answer, used, read }
}

/** A token is a byte at least: no text has more tokens than bytes. */
function worstOf<T>(settings: ModelsSettings, asking: Asking<T>): Used {
  const { system, messages, jsonSchema, tools = {}, maxTokens, model } = asking
  const toolTexts = Object.entries(tools).map(([name, { description, input }]) =>
    JSON.stringify([
      name,
      description,
      input instanceof z.ZodType ? z.toJSONSchema(input, { io: 'input' }) : input,
    ]),
  )
  const texts = [system, ...messages.map((message) => JSON.stringify(message)), ...toolTexts]
  if (jsonSchema) texts.push(JSON.stringify(jsonSchema))
  const overhead =
    OVERHEAD_TOKENS.call +
    OVERHEAD_TOKENS.message * (messages.length + 1) +
    (toolTexts.length > 0 || jsonSchema ? OVERHEAD_TOKENS.tools : 0)
  const inputTokens = texts.reduce((sum, text) => sum + Buffer.byteLength(text), overhead)
  return { inputTokens, outputTokens: maxTokens, costMicros: costOf(settings, model, inputTokens, maxTokens) }
}

function usedBy(settings: ModelsSettings, model: string, answer: ModelAnswer, worst: Used): Used {
  const { usage, text, toolCalls } = answer
  const saidNothing = text === '' && toolCalls.length === 0
  const inputTokens = isCount(usage.inputTokens, 1) ? usage.inputTokens : worst.inputTokens
  const outputTokens = isCount(usage.outputTokens, saidNothing ? 0 : 1)
    ? usage.outputTokens
    : worst.outputTokens
  return { inputTokens, outputTokens, costMicros: costOf(settings, model, inputTokens, outputTokens) }
}

/** Servers that do not count say nothing, or zero. */
function isCount(tokens: number | undefined, min: number): tokens is number {
  return Number.isSafeInteger(tokens) && tokens! >= min && tokens! <= TOKENS_MAX
}

function costOf(settings: ModelsSettings, model: string, inputTokens: number, outputTokens: number): number {
  const { input, output } = priceOf(settings, model)
  return Math.ceil(inputTokens * input + outputTokens * output)
}

/** Who stops waiting does not stop the model. */
function mayHaveCost(thrown: unknown, signal: AbortSignal): boolean {
  if (thrown instanceof ModelError) return thrown.mayCost
  return signal.aborted || !(thrown instanceof TidemarkError)
}

function readAnswer<T>({ text, toolCalls, finish }: ModelAnswer, { schema }: Asking<T>): Read<T> {
  if (finish === 'filtered') return { isUsable: false, problem: 'the filter of the service refused it' }
  if (finish === 'length') return { isUsable: false, problem: 'it was cut off before its end' }
  if (toolCalls.length > 0) return { isUsable: true, value: undefined }
  if (text.trim() === '') return { isUsable: false, problem: 'it is empty' }
  if (!schema) return { isUsable: true, value: undefined }
  const json = jsonIn(text)
  if (json === undefined) return { isUsable: false, problem: 'it is not JSON' }
  const parsed = schema.safeParse(json)
  if (parsed.success) return { isUsable: true, value: parsed.data }
  const [issue] = parsed.error.issues
  const where = issue?.path.map(String).join('.') || 'it'
  return { isUsable: false, problem: `${where} is not as the schema wants it` }
}

/** Models put JSON between words, and between fences of code. */
function jsonIn(text: string): unknown {
  const [from, to] = [text.indexOf('{'), text.lastIndexOf('}')]
  for (const one of [text, from < 0 ? '' : text.slice(from, to + 1)]) {
    try {
      return JSON.parse(one)
    } catch {
      // The next form of it; at the end, it is none.
    }
  }
  return undefined
}

function repairOf<T>({ answer, read }: Called<T>): ModelMessage[] {
  const problem = read.isUsable ? '' : read.problem
  const said = answer.text.slice(0, BAD_ANSWER_CHARS)
  const order = `Your answer cannot be used: ${problem}. Answer again, complete and short, only in the form that was asked for.`
  return [
    ...(said.trim() === '' ? [] : [{ role: 'assistant' as const, text: said }]),
    { role: 'user', text: order },
  ]
}

function answerOf<T>({ model }: Asking<T>, calls: readonly Called<T>[]): Answer<T> {
  const { id, answer, read } = calls.at(-1)!
  const sum = (of: (used: Used) => number): number => calls.reduce((total, { used }) => total + of(used), 0)
  return {
    value: read.isUsable ? read.value : undefined,
    text: answer.text,
    toolCalls: answer.toolCalls,
    usage: { inputTokens: sum((used) => used.inputTokens), outputTokens: sum((used) => used.outputTokens) },
    costMicros: sum((used) => used.costMicros),
    model,
    callId: id,
  }
}

/** As the answer is to be: every field is there, and no other. */
function jsonSchemaOf(schema: z.ZodType): JsonSchema {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io: 'output', unrepresentable: 'any' })
  return rest
}

function plainMessage(message: AskMessage): ModelMessage {
  return 'content' in message ? { role: message.role, text: message.content } : message
}

function sealName(account: string): string {
  return `assist-calls:${account}`
}

function sealedTranscript<T>(
  { vault }: Tools,
  asking: Asking<T>,
  { text, toolCalls }: ModelAnswer,
): Uint8Array {
  const said = asking.messages.map((message) =>
    message.role === 'tool'
      ? message.results.map((one) => `tool ${one.name}:\n${one.text}`).join('\n\n')
      : `${message.role}:\n${message.text}`,
  )
  const calls = toolCalls.map(({ name, input }) => `call of ${name}:\n${JSON.stringify(input)}`)
  const whole = [`system:\n${asking.system}`, ...said, `answer:\n${text}`, ...calls].join('\n\n')
  return vault.seal(sealName(asking.account), whole.slice(0, TRANSCRIPT_CHARS_MAX))
}

async function estimate(
  { settings, store, cap }: Pick<Tools, 'settings' | 'store' | 'cap'>,
  about: Parameters<Models['estimate']>[0],
): Promise<Estimate | undefined> {
  const { account, purpose, calls } = about
  const own = modelFor(settings, purpose)
  const model = settings.provider === 'off' ? undefined : (about.model ?? own)
  if (model === undefined) return undefined
  const usual = await store.usual(account, purpose)
  const each = usual ?? {
    inputTokens: SYSTEM_TOKENS + (about.chars ?? CHARS_USUAL) / CHARS_PER_TOKEN,
    outputTokens: ANSWER_TOKENS[purpose],
  }
  const inputTokens = Math.ceil(each.inputTokens * calls)
  const outputTokens = Math.ceil(each.outputTokens * calls)
  const costMicros = costOf(settings, model, inputTokens, outputTokens)
  const days = daysOf(cap, { costMicros, tokens: inputTokens + outputTokens }, calls)
  return { model, calls, inputTokens, outputTokens, costMicros, basis: usual ? 'calls' : 'sizes', days }
}

function daysOf(cap: Cap, whole: Spending, calls: number): number | undefined {
  if (calls === 0) return 0
  const shares = [
    cap.costMicros === null ? 0 : whole.costMicros / cap.costMicros,
    cap.tokens === null ? 0 : whole.tokens / cap.tokens,
  ]
  const share = Math.max(...shares)
  return share / calls > 1 ? undefined : Math.max(1, Math.ceil(share))
}

function noModel(purpose: Purpose): TidemarkError {
  return new TidemarkError(`No language model is configured that could ${WORK[purpose]}.`, {
    kind: 'permanent',
    code: 'no-model',
    hint: 'Set models.provider and models.model; mail is sorted by rules and by the classifier that needs no model until then.',
  })
}

/** Which models there are, and so what they cost, is said by who pays for them. */
function notConfigured(model: string): TidemarkError {
  return new TidemarkError(`The model ${JSON.stringify(model.slice(0, 100))} is not configured here.`, {
    kind: 'permanent',
    code: 'model-not-configured',
    hint: 'A profile may name models that the settings of [models] name, with their prices.',
  })
}

const WORK: Readonly<Record<Purpose, string>> = {
  classify: 'sort mail',
  draft: 'write drafts',
  context: 'look for related mail',
  agent: 'run agents',
}

function noKey(provider: string): TidemarkError {
  return new TidemarkError(`No key for ${provider} is configured.`, {
    kind: 'permanent',
    code: 'no-model',
    hint: 'Set models.api_key, or TIDEMARK_MODELS_API_KEY.',
  })
}

function unusableAnswer(problem: string): TidemarkError {
  return new TidemarkError(`The language model's answer cannot be used: ${problem}.`, {
    kind: 'permanent',
    code: 'model-unusable',
  })
}

function overBudget(
  store: ModelCalls,
  { account, cap, spending, day }: { account: string; cap: Cap; spending: Spending; day: Day },
): TidemarkError {
  const hint = 'Raise models.day_cost or models.day_tokens, or wait until the day ends, at midnight UTC.'
  const fits = (used: Spending): boolean =>
    (cap.costMicros === null || used.costMicros + spending.costMicros <= cap.costMicros) &&
    (cap.tokens === null || used.tokens + spending.tokens <= cap.tokens)
  if (!fits({ costMicros: 0, tokens: 0 })) {
    const message = `A single question could cost more than the user of ${account} may spend on a day.`
    return new TidemarkError(message, { kind: 'permanent', code: 'model-budget', hint })
  }
  const untilMidnightMs = store.dayEndMs() - store.ledger.now()
  const retryAfterMs = fits(day.spent) ? Math.min(IN_FLIGHT_MS, untilMidnightMs) : untilMidnightMs
  return new TidemarkError(`The user of ${account} has used up what language models may cost on a day.`, {
    kind: 'throttled',
    code: 'model-budget',
    retryAfterMs,
    hint,
  })
}
