/** A clean-up in words: what is wished for, what a plan asks of people next, runs, and a proof that is looked after. */
import type { StateText } from '../../../../../web/src/components/badge.tsx'
import { ApiError } from '../../../../../web/src/problem.ts'
import type { CleanUpPlan, CleanUpProof, CleanUpRunView, CleanUpWish } from '../../api/schemas.ts'
import type { RunStep } from '../api.ts'

export type Action = NonNullable<CleanUpWish['action']>
export type AgeUnit = 'd' | 'w' | 'mo' | 'y'
export type WishForm = { account: string; amount: string; unit: AgeUnit; query: string; action: Action }

export const ACTIONS: readonly { value: Action; text: string; hint: string }[] = [
  {
    value: 'unlabel',
    text: 'Take it out of the inbox',
    hint: 'It stays in Gmail under All Mail. Frees no space. Can be undone.',
  },
  {
    value: 'trash',
    text: 'Move it to the trash',
    hint: 'Gmail deletes it after 30 days. Can be undone until then.',
  },
  {
    value: 'delete',
    text: 'Delete it for good',
    hint: 'Gmail cannot bring it back; Tidemark can put it in again from its copy.',
  },
]

export const UNITS: readonly { value: AgeUnit; text: string }[] = [
  { value: 'd', text: 'days' },
  { value: 'w', text: 'weeks' },
  { value: 'mo', text: 'months' },
  { value: 'y', text: 'years' },
]

/** Undefined where the age is no whole number of up to four digits. */
export function wishOf(form: WishForm): Required<CleanUpWish> | undefined {
  const amount = form.amount.trim()
  if (form.account === '' || !/^\d{1,4}$/.test(amount)) return undefined
  const { account, query, action } = form
  return { account, olderThan: `${Number(amount)}${form.unit}`, query: query.trim(), action }
}

export const isSameWish = (a: CleanUpWish | undefined, b: CleanUpWish | undefined): boolean =>
  a !== undefined &&
  b !== undefined &&
  a.account === b.account &&
  a.olderThan === b.olderThan &&
  a.query === b.query &&
  a.action === b.action

/** Why this account cannot do that, or undefined. */
export function missingAccess(access: string | null, action: Action): string | undefined {
  if (access === null || access === 'full' || (access === 'modify' && action !== 'delete')) return undefined
  return action === 'delete'
    ? 'Tidemark may not delete in this account. Connect it again with full access to do so.'
    : 'Tidemark may only read this account. Connect it again and allow changes to do so.'
}

/** Before the proof, the next step is the proof; what is for good always looks so. */
export function startKind({
  wish,
  isFull,
}: Pick<CleanUpPlan, 'wish' | 'isFull'>): 'danger' | 'primary' | 'plain' {
  if (!isFull) return 'plain'
  return wish.action === 'delete' ? 'danger' : 'primary'
}

const STATES: Record<string, StateText> = {
  planning: { text: 'Being planned', tone: 'accent' },
  planned: { text: 'Waits for you', tone: 'warn' },
  acting: { text: 'Running', tone: 'accent' },
  done: { text: 'Done', tone: 'accent' },
  abandoned: { text: 'Given up', tone: 'neutral' },
  undoing: { text: 'Being undone', tone: 'accent' },
  undone: { text: 'Undone', tone: 'neutral' },
}

const ACTION_TEXTS: Record<string, string> = {
  unlabel: 'out of the inbox',
  trash: 'to the trash',
  delete: 'delete for good',
}

const MOVING = new Set(['planning', 'acting', 'undoing'])
const HALTABLE = new Set(['planning', 'acting'])

export const runState = (run: Pick<CleanUpRunView, 'state'>): StateText =>
  STATES[run.state] ?? { text: run.state, tone: 'neutral' }

export const actionText = (action: string): string => ACTION_TEXTS[action] ?? action

export const isMoving = (run: Pick<CleanUpRunView, 'state' | 'trouble'>): boolean =>
  MOVING.has(run.state) && run.trouble === null

/** In the order in which somebody would look for them. */
export function stepsOf(run: Pick<CleanUpRunView, 'state' | 'trouble' | 'canUndo' | 'canResume'>): RunStep[] {
  const steps: RunStep[] = []
  // A run that moves needs no push; one in trouble or waiting does.
  if (run.canResume && !isMoving(run)) steps.push('resume')
  if (HALTABLE.has(run.state) && run.trouble === null) steps.push('halt')
  if (run.canResume) steps.push('abandon')
  if (run.canUndo) steps.push('undo')
  return steps
}

/* Looking after a proof that the server makes. It goes on without anybody who looks, so a look that fails is made again. */

export type ProofWatch = {
  look: (id: number) => Promise<CleanUpProof>
  show: (proof: CleanUpProof) => void
  /** Between two looks. */
  pause: () => Promise<void>
  /** Nobody wants to know any more. */
  isLeft: () => boolean
}

/** A server that starts anew is back long before. */
const FAILED_LOOKS_MAX = 120

/** The proof when it is over, or as it was when the page was left. */
export async function watchProof(first: CleanUpProof, watch: ProofWatch): Promise<CleanUpProof> {
  let now = first
  let failed = 0
  while (now.state === 'running' && !watch.isLeft()) {
    watch.show(failed === 0 ? now : { ...now, trouble: 'The server does not answer. It is asked again.' })
    await watch.pause()
    try {
      now = await watch.look(now.id)
      failed = 0
    } catch (cause) {
      failed += 1
      if (watch.isLeft() || failed > FAILED_LOOKS_MAX || !isPassing(cause)) throw cause
    }
  }
  return now
}

/** Not reached, too much asked, or unwell: not that it refuses. */
function isPassing(cause: unknown): boolean {
  return cause instanceof ApiError && (cause.status === 0 || cause.status === 429 || cause.status >= 500)
}
