/**
 * One run of an agent: the model is asked, code decides which of the calls that it wants are made, and the model is told
 * what came of them, until it wants none, or has been asked as often as its profile allows.
 *
 * Invariants:
 * - only tools on the closed list of the run are run, with arguments that fit and that the profile covers; all else is
 *   refused, on record, and has no effect. What the model says about itself counts for nothing
 * - what the model said is on record before any of its calls is made, a call before it is made, and its end before the
 *   next one: a run that was cut off goes on from its record. What had an effect has it once (see tool.ts)
 * - calls are made one after the other; each has a limit of time and of what it answers; all of them together as well
 * - a model or a mailbox that is out of reach ends nothing: that is thrown, and the job tries again from the record
 */
import { createHash } from 'node:crypto'
import { oneLine } from '../../../app/plain-text.ts'
import type { Clock } from '../../../base/clock.ts'
import { asTidemarkError, TidemarkError } from '../../../base/errors.ts'
import type { ModelMessage, ModelTools, ToolCall } from '../../../cloud/models/conversation.ts'
import type { Effects } from '../../../ledger/contract.ts'
import type { ContextPassage } from '../contract.ts'
import { type ActionGrant, checkAction, readable } from '../guard/actions.ts'
import { quoted } from './fence.ts'
import { isMcpTool } from './profiles.ts'
import {
  endRun,
  noteCall,
  noteEnd,
  noteSaid,
  type Run,
  type RunStatus,
  type Step,
  type WantedCall,
} from './store.ts'
import { type AgentTool, type ToolAnswer, ToolRefusal } from './tool.ts'
import { foundThreads } from './tools/archive.ts'

export type AgentAsk = (question: {
  system: string
  messages: readonly ModelMessage[]
  tools: ModelTools
  signal: AbortSignal
}) => Promise<{
  text: string
  toolCalls: readonly Pick<ToolCall, 'name' | 'input'>[]
  costMicros: number
}>

export type AgentRun = {
  run: Run
  /** As they are on record. */
  steps: readonly Step[]
  system: string
  /** What it is about, fenced. */
  prompt: string
  maxIterations: number
  /** The closed list: what is not here does not exist. */
  tools: readonly AgentTool[]
  grant: Omit<ActionGrant, 'threadIds' | 'mcpTools'>
  ask: AgentAsk
  /** Writes, in a transaction that is fenced by the lease of the job. */
  commit: (effects: Effects) => Promise<void>
  clock: Clock
  signal: AbortSignal
}

export type AgentResult = {
  status: Exclude<RunStatus, 'running'>
  /** What it said at the end, or what went wrong; of a model: data. */
  text: string
  code: string
  iterations: number
  refusals: number
  /** What was done, by the record and not by what the model says. */
  done: readonly { number: number; tool: string }[]
}

/** More in one answer are refused. */
export const CALLS_PER_ANSWER_MAX = 8
/** Of those, so many are on record, with their refusals; the rest is passed over. */
export const CALLS_KEPT_MAX = 32
export const INPUT_CHARS_MAX = 50_000
const SAID_CHARS_MAX = 20_000
const ANSWER_CHARS_MAX = 8_000
/** Of what all tools of a run answer: what is beyond it is told in short. */
const ANSWERS_CHARS_MAX = 150_000
const SHORT_CHARS_MAX = 500
const NAME_CHARS_MAX = 64

export async function runAgent(about: AgentRun): Promise<AgentResult> {
  const state = new RunState(about)
  if (about.run.status !== 'running') return state.result(about.run.status, about.run.text, about.run.code)
  try {
    for (;;) {
      // What was said last may want calls that were not made yet, or not to their end.
      const last = state.lastSaid()
      if (last) await makeCalls(about, state, last)
      if (last && last.calls.length === 0) return await finish(about, state, 'completed', last.text, '')
      if (state.iterations >= about.maxIterations) {
        const text = `It was asked ${state.iterations} times and still wanted more.`
        return await finish(about, state, 'max_iterations', text, 'max-iterations')
      }
      await askModel(about, state)
    }
  } catch (thrown) {
    const error = asTidemarkError(thrown)
    // Nobody is at fault, or the job was told to stop: it goes on from the record.
    if (about.signal.aborted || !ENDS_RUN.has(error.kind)) throw thrown
    return await finish(about, state, 'error', error.message, error.code ?? error.kind)
  }
}

const ENDS_RUN: ReadonlySet<TidemarkError['kind']> = new Set(['permanent', 'gone', 'bug'])

async function finish(
  { run, commit, clock }: AgentRun,
  state: RunState,
  status: AgentResult['status'],
  said: string,
  code: string,
): Promise<AgentResult> {
  const text = readable(said, SAID_CHARS_MAX)
  await commit(endRun(run.id, { status, text, code, atMs: clock.now() }))
  return state.result(status, text, code)
}

async function askModel(about: AgentRun, state: RunState): Promise<void> {
  const { run, system, tools, ask, commit, clock, signal } = about
  signal.throwIfAborted()
  const offered = Object.fromEntries(
    tools.map(({ name, description, input }) => [name, { description, input }]),
  )
  const answer = await ask({ system, messages: state.messages(), tools: offered, signal })
  const step: Step = {
    ...BLANK,
    number: state.nextNumber(),
    outcome: 'said',
    text: readable(answer.text, SAID_CHARS_MAX),
    calls: answer.toolCalls.slice(0, CALLS_KEPT_MAX).map(bounded),
    atMs: clock.now(),
  }
  await commit(noteSaid(run.id, { ...step, costMicros: Math.max(0, Math.round(answer.costMicros)) }))
  state.add(step)
}

const BLANK = { tool: '', input: '', text: '', code: '', calls: [], context: [] } as const

/** Of arguments that are too large, only that they were is kept. */
function bounded({ name, input }: Pick<ToolCall, 'name' | 'input'>): WantedCall {
  const text = jsonOf(input)
  const short = oneLine(String(name), NAME_CHARS_MAX)
  if (text.length > INPUT_CHARS_MAX) return { name: short, input: { tooLarge: text.length } }
  return { name: short, input: JSON.parse(text) as unknown }
}

/** What cannot be written as JSON is nothing that a tool could take. PostgreSQL takes no NUL. */
function jsonOf(input: unknown): string {
  try {
    return (JSON.stringify(input ?? {}) ?? '{}').replaceAll('\\u0000', '').toWellFormed()
  } catch {
    return '{}'
  }
}

async function makeCalls(about: AgentRun, state: RunState, said: Step): Promise<void> {
  for (const [n, call] of said.calls.entries()) {
    about.signal.throwIfAborted()
    const number = said.number + 1 + n
    const before = state.step(number)
    if (before && before.outcome !== 'begun') continue
    await makeCall(about, state, { call, number, n, isBegun: before !== undefined })
  }
}

type Call = { call: WantedCall; number: number; n: number; isBegun: boolean }

async function makeCall(about: AgentRun, state: RunState, one: Call): Promise<void> {
  const { run, commit, clock } = about
  const { call, number, n, isBegun } = one
  const step: Step = {
    ...BLANK,
    number,
    outcome: 'begun',
    tool: call.name,
    input: jsonOf(call.input),
    atMs: clock.now(),
  }
  const checked = checkCall(about, state, { call, n })
  if (checked.refusal && !isBegun) {
    const refused = { ...step, outcome: 'refused' as const, ...checked.refusal }
    await commit(noteCall(run.id, refused))
    state.add(refused)
    return
  }
  if (!isBegun) await commit(noteCall(run.id, { ...step, outcome: 'begun' }))
  const end = checked.refusal
    ? { outcome: 'refused' as const, ...checked.refusal }
    : isBegun && checked.tool.effect === 'once'
      ? UNKNOWN_END
      : await outcomeOf(about, state, { ...checked, number })
  const { effects, ...told }: CallEnd = end
  const ended = { ...step, ...told, context: told.context ?? [], atMs: clock.now() }
  await commit(noteEnd(run.id, { ...ended, outcome: told.outcome, effects }))
  state.add(ended)
}

type CallEnd = {
  outcome: 'done' | 'refused' | 'failed'
  text: string
  code: string
  context?: readonly ContextPassage[]
  effects?: Effects | undefined
}

const UNKNOWN_END: CallEnd = {
  outcome: 'failed',
  code: 'unknown-end',
  text: 'The work was cut off while this call was made. Whether it was done is not known, so it is not made again.',
}

type CheckedCall =
  | { refusal: { code: string; text: string } }
  | { refusal?: undefined; tool: AgentTool; action: Allowed }
type Allowed = Extract<ReturnType<typeof checkAction>, { isAllowed: true }>['action']

function checkCall(
  { tools, grant }: AgentRun,
  state: RunState,
  { call, n }: { call: WantedCall; n: number },
): CheckedCall {
  const refuse = (code: string, text: string): CheckedCall => ({ refusal: { code, text } })
  const tool = tools.find(({ name }) => name === call.name)
  if (n >= CALLS_PER_ANSWER_MAX) {
    return refuse('too-many-calls', `At most ${CALLS_PER_ANSWER_MAX} calls are made for one answer.`)
  }
  if (isTooLarge(call.input)) {
    return refuse('bad-arguments', `The arguments have more than ${INPUT_CHARS_MAX} characters.`)
  }
  const mcpTools = new Set(tools.map(({ name }) => name).filter(isMcpTool))
  const check = checkAction(call, { ...grant, threadIds: state.threadIds, mcpTools })
  if (!check.isAllowed) return refuse(check.code, sentence(check.reason))
  // Granted, and yet not there: a server of tools that cannot be reached.
  if (!tool) return refuse('not-there', `${call.name} is not there just now.`)
  if (tool.isOncePerRun && state.wasDone(tool.name)) {
    return refuse('once-only', `${tool.name} was called in this run already.`)
  }
  return { tool, action: check.action }
}

function isTooLarge(input: unknown): boolean {
  return typeof input === 'object' && input !== null && Object.hasOwn(input, 'tooLarge')
}

function sentence(text: string): string {
  return `${text.slice(0, 1).toUpperCase()}${text.slice(1)}.`
}

async function outcomeOf(
  about: AgentRun,
  state: RunState,
  { tool, action, number }: { tool: AgentTool; action: Allowed; number: number },
): Promise<CallEnd> {
  const { run, clock, signal } = about
  const key = callKey(run.key, number)
  try {
    const answer = await withinTime(
      (inTime) => tool.run(action, { run: run.id, key, context: state.context(), signal: inTime }),
      { clock, signal, timeoutMs: tool.timeoutMs },
    )
    return { outcome: 'done', code: '', ...told(answer, run.fence, state.answersLeft()) }
  } catch (thrown) {
    if (signal.aborted) throw thrown
    if (thrown instanceof ToolRefusal) {
      return { outcome: 'refused', code: thrown.code, text: readable(thrown.message, SHORT_CHARS_MAX) }
    }
    const error = asTidemarkError(thrown)
    // What changes something is made again until it is known to be done; what only looks costs the run one call.
    if (tool.effect === 'keyed' && error.kind !== 'permanent' && error.kind !== 'gone') throw error
    return { outcome: 'failed', code: error.code ?? error.kind, text: `${tool.name} did not work.` }
  }
}

function told(answer: ToolAnswer, fence: string, charsLeft: number): Omit<CallEnd, 'outcome' | 'code'> {
  const { text, quote, context, effects } = answer
  const charsMax = Math.max(SHORT_CHARS_MAX, Math.min(ANSWER_CHARS_MAX, charsLeft))
  const words = quote === undefined ? text : `${text}\n${quoted(fence, readable(quote, charsMax), charsMax)}`
  return {
    text: words,
    effects,
    ...(context === undefined ? {} : { context }),
  }
}

/** Of one call of one run; letters and digits, as a header of a draft takes them. */
export function callKey(runKey: string, number: number): string {
  return createHash('sha256')
    .update(JSON.stringify([runKey, number]))
    .digest('hex')
    .slice(0, 40)
}

async function withinTime<T>(
  work: (signal: AbortSignal) => Promise<T>,
  { clock, signal, timeoutMs }: { clock: Clock; signal: AbortSignal; timeoutMs: number },
): Promise<T> {
  const controller = new AbortController()
  const slow = new TidemarkError(`a tool took longer than ${timeoutMs / 1_000} s`, {
    kind: 'transient',
    code: 'tool-slow',
  })
  const { promise: stopped, reject } = Promise.withResolvers<never>()
  const stop = (reason: unknown): void => {
    controller.abort(reason)
    reject(reason)
  }
  const onAbort = (): void => stop(signal.reason)
  const cancel = clock.timer(timeoutMs, () => stop(slow))
  signal.addEventListener('abort', onAbort, { once: true })
  if (signal.aborted) onAbort()
  try {
    // A tool that does not heed its signal is not waited for; what it does later is not heard.
    return await Promise.race([work(controller.signal), stopped])
  } finally {
    cancel()
    signal.removeEventListener('abort', onAbort)
  }
}

/** What is on record, as the model is told it. */
class RunState {
  readonly #about: AgentRun
  readonly #steps = new Map<number, Step>()
  readonly threadIds: Set<string>

  constructor(about: AgentRun) {
    this.#about = about
    this.threadIds = new Set([about.run.thread])
    for (const step of about.steps) this.add(step)
  }

  add(step: Step): void {
    this.#steps.set(step.number, step)
    for (const id of foundThreads(step.context, this.#about.run.account)) this.threadIds.add(id)
  }

  step(number: number): Step | undefined {
    return this.#steps.get(number)
  }

  lastSaid(): Step | undefined {
    return [...this.#steps.values()].findLast(({ outcome }) => outcome === 'said')
  }

  get iterations(): number {
    return [...this.#steps.values()].filter(({ outcome }) => outcome === 'said').length
  }

  nextNumber(): number {
    return Math.max(0, ...this.#steps.keys()) + 1
  }

  wasDone(tool: string): boolean {
    return [...this.#steps.values()].some((step) => step.tool === tool && step.outcome === 'done')
  }

  context(): ContextPassage[] {
    return [...this.#steps.values()].flatMap(({ context }) => context)
  }

  answersLeft(): number {
    const used = [...this.#steps.values()].reduce(
      (sum, step) => sum + (step.tool === '' ? 0 : step.text.length),
      0,
    )
    return ANSWERS_CHARS_MAX - used
  }

  messages(): ModelMessage[] {
    const messages: ModelMessage[] = [{ role: 'user', text: this.#about.prompt }]
    for (const said of this.#steps.values()) {
      if (said.outcome !== 'said') continue
      const calls = said.calls.map((call, n) => ({ call, number: said.number + 1 + n }))
      const toolCalls = calls.map(({ call, number }) => ({
        id: idOf(number),
        name: nameOf(call.name),
        input: isObject(call.input) ? call.input : {},
      }))
      messages.push({ role: 'assistant', text: said.text, toolCalls })
      if (calls.length === 0) continue
      const results = calls.map(({ call, number }) => ({
        id: idOf(number),
        name: nameOf(call.name),
        text: this.#told(number),
      }))
      messages.push({ role: 'tool', results })
    }
    return messages
  }

  #told(number: number): string {
    const step = this.#steps.get(number)
    if (!step) return 'It was not called.'
    return step.outcome === 'refused' ? `Refused: ${step.text}` : step.text
  }

  result(status: AgentResult['status'], text: string, code: string): AgentResult {
    const steps = [...this.#steps.values()]
    return {
      status,
      text,
      code,
      iterations: this.iterations,
      refusals: steps.filter(({ outcome }) => outcome === 'refused').length,
      done: steps.filter(({ outcome }) => outcome === 'done').map(({ number, tool }) => ({ number, tool })),
    }
  }
}

/** Our own, whatever the model called them: it may have used one twice. */
function idOf(number: number): string {
  return `call_${number}`
}

/** As services take names of tools. */
function nameOf(name: string): string {
  return name.replaceAll(/[^\w-]/g, '_').slice(0, NAME_CHARS_MAX) || '_'
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
