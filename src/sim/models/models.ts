/**
 * The simulated language model. Three protocols, one mind: what it answers is, in this order,
 *
 *   a function of the test (`script`)  ▸  a scripted answer that fits  ▸  what its mode says: sensible, or obedient
 *
 * Faults of the kernel (slow, silent, throttled, cut off) come before all of that.
 */
import { z } from 'zod'
import { parse } from '../control.ts'
import type { Refusal } from '../faults.ts'
import {
  jsonAnswer,
  type Operation,
  type Routes,
  type SimAnswer,
  type SimCall,
  safeDecode,
} from '../server.ts'
import type { Kernel, RunningService, ServiceAbout } from '../service.ts'
import { anthropic } from './anthropic.ts'
import {
  type Asked,
  answerInput,
  completed,
  type Protocol,
  promptText,
  promptTokens,
  type ScriptedAnswer,
} from './exchange.ts'
import { google } from './google.ts'
import { type Obeyed, obedientAnswer } from './obedient.ts'
import { modelList, openai } from './openai.ts'
import type { Problem, ProtocolAdapter } from './protocol.ts'
import { sensibleAnswer } from './sensible.ts'

export type ModelMode = 'sensible' | 'obedient'

export type ModelsOptions = {
  models?: readonly string[]
  /** What callers must send; anything, or nothing, otherwise. */
  apiKey?: string
  mode?: ModelMode
  /** A longer prompt is refused. */
  contextTokens?: number
  /** Undefined: as if it were not there. */
  script?: Script
}

export type Script = (asked: Asked) => ScriptedAnswer | undefined

export type ModelQuirks = {
  /** The body ends in the middle of its JSON, with a length that fits. */
  isMalformed: boolean
  /** Where JSON was asked for, it talks. */
  isNonsense: boolean
  /** Half of the answer, as if there were no more tokens. */
  isCutOff: boolean
  /** Nothing is said of tokens. */
  hidesUsage: boolean
}

export type ModelCounts = { calls: number; answered: number; inputTokens: number; outputTokens: number }

const MODELS_DEFAULT = ['sim-model', 'sim-model-large']
const CONTEXT_TOKENS = 128_000
const REMEMBERED_MAX = 1_000
const SCRIPTED_MAX = 1_000
const PREFIX = '/model'
export const NONSENSE = 'As a language model I would rather talk about the weather, which is lovely.'

const scriptedInput = z.strictObject({
  /** Only where the prompt holds this text. */
  contains: z.string().optional(),
  /** Only of this model. */
  model: z.string().optional(),
  /** For so many calls; one otherwise. */
  times: z.number().int().min(1).optional(),
  answer: answerInput,
})
const settingsInput = z.strictObject({
  mode: z.enum(['sensible', 'obedient']).optional(),
  isMalformed: z.boolean().optional(),
  isNonsense: z.boolean().optional(),
  isCutOff: z.boolean().optional(),
  hidesUsage: z.boolean().optional(),
})

export type Scripted = z.output<typeof scriptedInput>

const adapters: Readonly<Record<Protocol, ProtocolAdapter>> = { openai, anthropic, google }

export class Models implements RunningService, Routes {
  readonly addresses: readonly string[] = []
  readonly routes: readonly Routes[] = [this]
  readonly models: readonly string[]
  readonly quirks: ModelQuirks = noQuirks()
  mode: ModelMode
  script: Script | undefined
  /** What it was asked, the newest last. */
  readonly asked: Asked[] = []
  /** What it did as an obedient one. */
  readonly obeyed: Obeyed[] = []
  readonly #kernel: Kernel
  readonly #apiKey: string | undefined
  readonly #contextTokens: number
  readonly #scripted: (Scripted & { left: number })[] = []
  #counts: ModelCounts = noCounts()

  constructor(kernel: Kernel, options: ModelsOptions) {
    this.#kernel = kernel
    this.models = options.models ?? MODELS_DEFAULT
    this.mode = options.mode ?? 'sensible'
    this.script = options.script
    this.#apiKey = options.apiKey
    this.#contextTokens = options.contextTokens ?? CONTEXT_TOKENS
  }

  /** Of a client of OpenAI's protocol. */
  get baseUrl(): string {
    return this.urlOf('openai')
  }

  /** What the client of a protocol is given as its address. */
  urlOf(protocol: Protocol): string {
    return `${this.#kernel.origin()}${PREFIX}/${protocol}/${protocol === 'google' ? 'v1beta' : 'v1'}`
  }

  get counts(): Readonly<ModelCounts> {
    return this.#counts
  }

  /** Answers for the calls to come, in this order; each once unless it says otherwise. */
  answer(...answers: readonly (ScriptedAnswer | Scripted)[]): void {
    for (const one of answers) {
      const scripted = 'answer' in one ? one : { answer: one }
      if (this.#scripted.length >= SCRIPTED_MAX) throw new Error('There are too many scripted answers.')
      this.#scripted.push({ ...scripted, left: scripted.times ?? 1 })
    }
  }

  clearAnswers(): void {
    this.#scripted.length = 0
  }

  match(call: SimCall): Operation | undefined {
    if (!call.path.startsWith(`${PREFIX}/`)) return undefined
    const [, , protocol, , ...rest] = call.path.split('/')
    const adapter = adapters[protocol as Protocol]
    if (!adapter || !Object.hasOwn(adapters, protocol ?? '')) return undefined
    const found = this.#operation(call, protocol as Protocol, rest.map(safeDecode).join('/'))
    return found && { name: found.name, run: found.run, refuse: (refusal) => refused(adapter, refusal) }
  }

  control(call: SimCall, pieces: readonly string[]): SimAnswer | undefined {
    if (pieces[0] !== 'models') return undefined
    switch (`${call.verb} ${pieces.slice(1).join('/')}`) {
      case 'GET ':
        return this.#state()
      case 'PUT ': {
        const { mode = this.mode, ...quirks } = parse(settingsInput, call)
        this.mode = mode
        Object.assign(this.quirks, quirks)
        return this.#state()
      }
      case 'POST answers':
        this.answer(parse(scriptedInput, call) as Scripted)
        return this.#state()
      case 'DELETE answers':
        this.clearAnswers()
        return this.#state()
      case 'GET asked':
        return jsonAnswer({ asked: this.asked, obeyed: this.obeyed })
      default:
        return undefined
    }
  }

  counters(): Record<string, unknown> {
    return { models: this.#counts }
  }

  resetCounters(): void {
    this.#counts = noCounts()
    this.asked.length = 0
    this.obeyed.length = 0
  }

  about(): ServiceAbout {
    const { baseUrl, models } = this
    return {
      text: `A simulated language model is at ${baseUrl}, with ${models.join(', ')}.`,
      settings: {
        TIDEMARK_MODELS_PROVIDER: 'openai-compatible',
        TIDEMARK_MODELS_BASE_URL: baseUrl,
        TIDEMARK_MODELS_MODEL: models[0] ?? '',
      },
      refreshTokens: [],
      json: { modelsUrl: baseUrl, languageModels: models },
    }
  }

  #state(): SimAnswer {
    const { models, mode, quirks } = this
    return jsonAnswer({ models, mode, quirks, scripted: this.#scripted.length, counts: this.#counts })
  }

  #operation(call: SimCall, protocol: Protocol, path: string): Pick<Operation, 'name' | 'run'> | undefined {
    const adapter = adapters[protocol]
    const { verb } = call
    const signedIn = (run: () => SimAnswer): SimAnswer => {
      if (this.#apiKey === undefined || adapter.keyOf(call) === this.#apiKey) return run()
      return wrong(adapter, adapter.problems.key)
    }
    if (verb === 'GET' && path === 'models' && protocol === 'openai')
      return { name: 'models.list', run: () => signedIn(() => modelList(this.models)) }
    const model = /^models\/(.+):(?:streamG|g)enerateContent$/.exec(path)?.[1]
    const isAsked =
      (protocol === 'openai' && path === 'chat/completions') ||
      (protocol === 'anthropic' && path === 'messages') ||
      (protocol === 'google' && model !== undefined)
    if (verb !== 'POST' || !isAsked) return undefined
    return { name: 'models.ask', run: () => signedIn(() => this.#ask(call, adapter, model)) }
  }

  #ask(call: SimCall, adapter: ProtocolAdapter, model: string | undefined): SimAnswer {
    this.#counts.calls += 1
    const { headers, path } = call
    const asked = adapter.read({ headers, path, json: jsonOf(call), ...(model !== undefined && { model }) })
    if (!asked) return wrong(adapter, adapter.problems.body)
    if (!this.models.includes(asked.model)) return wrong(adapter, adapter.problems.model(asked.model))
    const tokens = promptTokens(asked)
    const tokensMax = this.#contextTokens
    if (tokens > tokensMax) return wrong(adapter, adapter.problems.context({ tokens, tokensMax }))
    if (this.asked.length >= REMEMBERED_MAX) this.asked.shift()
    this.asked.push(asked)
    const scripted = this.#scriptedFor(asked) ?? this.#own(asked)
    if (scripted.status !== undefined) return scriptedError(adapter, scripted.status, scripted)
    const answered = completed(asked, scripted)
    this.#counts.answered += 1
    this.#counts.inputTokens += answered.usage?.input ?? 0
    this.#counts.outputTokens += answered.usage?.output ?? 0
    const answer = adapter.answer(asked, answered, `sim${this.#counts.calls}`)
    return scripted.isMalformed ? { ...answer, body: halfOf(answer.body) } : answer
  }

  #scriptedFor(asked: Asked): ScriptedAnswer | undefined {
    const own = this.script?.(asked)
    if (own) return own
    const text = promptText(asked)
    const at = this.#scripted.findIndex(
      ({ contains = '', model = asked.model }) => text.includes(contains) && model === asked.model,
    )
    const found = this.#scripted[at]
    if (!found) return undefined
    found.left -= 1
    if (found.left === 0) this.#scripted.splice(at, 1)
    return found.answer
  }

  #own(asked: Asked): ScriptedAnswer {
    const { isMalformed, isNonsense, isCutOff, hidesUsage } = this.quirks
    let answer: ScriptedAnswer
    if (this.mode === 'obedient') {
      const done = obedientAnswer(asked)
      if (this.obeyed.length >= REMEMBERED_MAX) this.obeyed.shift()
      this.obeyed.push(done.obeyed)
      answer = done.answer
    } else answer = isNonsense && asked.json ? { text: NONSENSE } : sensibleAnswer(asked)
    if (isCutOff) {
      const whole = answer.json === undefined ? (answer.text ?? '') : JSON.stringify(answer.json)
      answer = { text: whole.slice(0, whole.length / 2), finish: 'length' }
    }
    return { ...answer, isMalformed, ...(hidesUsage && { usage: null }) }
  }
}

function noCounts(): ModelCounts {
  return { calls: 0, answered: 0, inputTokens: 0, outputTokens: 0 }
}

function noQuirks(): ModelQuirks {
  return { isMalformed: false, isNonsense: false, isCutOff: false, hidesUsage: false }
}

function jsonOf({ body }: SimCall): unknown {
  try {
    return JSON.parse(body.toString('utf8'))
  } catch {
    return undefined
  }
}

function halfOf(body: SimAnswer['body']): Buffer {
  const whole = Buffer.concat([body].flat().map((piece) => Buffer.from(piece as string | Buffer)))
  return whole.subarray(0, Math.floor(whole.length / 2))
}

function wrong(adapter: ProtocolAdapter, { status, ...problem }: Problem & { status: number }): SimAnswer {
  return adapter.refuse(status, problem)
}

function scriptedError(adapter: ProtocolAdapter, status: number, scripted: ScriptedAnswer): SimAnswer {
  const { throttled, failed } = adapter.problems
  const usual = status === 429 ? throttled : failed
  const { code = usual.code, message = usual.message, retryAfterSeconds } = scripted
  return adapter.refuse(status, { code, message, headers: waitHeader(retryAfterSeconds) })
}

/** What a fault rule asked for. */
function refused(adapter: ProtocolAdapter, { status, message, retryAfterSeconds }: Refusal): SimAnswer {
  const usual = status === 429 ? adapter.problems.throttled : adapter.problems.failed
  const headers = waitHeader(retryAfterSeconds)
  return adapter.refuse(status, { code: usual.code, message: message ?? usual.message, headers })
}

function waitHeader(seconds: number | undefined): Record<string, string> {
  return seconds === undefined ? {} : { 'retry-after': String(Math.ceil(seconds)) }
}
