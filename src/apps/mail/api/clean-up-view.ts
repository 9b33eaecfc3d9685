/** Plans, proofs and runs of the clean-up as the API shows them. */
import { confirmationText } from '../clean-up/cutoff.ts'
import type { CleanUpRuns, Proof } from '../clean-up/runs.ts'
import type { Survey } from '../clean-up/survey.ts'
import { REFUSAL_TEXTS, type RefusalClass } from '../clean-up/verdict.ts'
import type { RunRow, Sum, Tally } from '../store/journal.ts'
import type { CleanUpPlan, CleanUpProof, CleanUpRunView } from './schemas.ts'

type ClassRow = CleanUpPlan['refused'][number]

/** `planned`: as many as a run would plan, of which the proof may refuse some. */
export function planView(
  survey: Survey,
  { wish, understood, planned }: Pick<CleanUpPlan, 'wish' | 'understood'> & { planned: number },
): CleanUpPlan {
  return {
    wish,
    understood,
    confirm: wish.action === 'delete' ? confirmationText(planned) : null,
    messages: survey.proven.messages,
    bytes: survey.proven.bytes,
    freedBytes: survey.freedBytes,
    refused: classRows(survey.refused),
    isFull: survey.depth === 'full',
  }
}

export function proofView({ id, state, wish, run, progress, trouble }: Proof): CleanUpProof {
  const isDone = state === 'done' && progress !== null
  const looked = progress?.looked ?? 0
  const plan = isDone ? planView(progress.survey, { wish, understood: run.query, planned: looked }) : null
  return { id, state, looked, plan, trouble }
}

export async function runView(runs: CleanUpRuns, run: RunRow): Promise<CleanUpRunView> {
  const tallies = await (await runs.journal()).tallies(run.id)
  const isOver = run.state === 'done' || run.state === 'abandoned'
  const isMoving = run.undo === 'undoing' || run.state === 'planning' || run.state === 'acting'
  const { id, account, action, query, createdAtMs, planned, done, refused } = run
  return {
    id,
    account,
    action,
    query,
    createdAtMs,
    planned,
    done,
    refused,
    state: run.undo ?? run.state,
    bytes: isOver ? run.doneBytes : run.plannedBytes,
    canUndo: canUndo(run, tallies),
    canResume: !isOver && run.undo === null,
    confirm: run.state === 'planned' && action === 'delete' ? confirmationOf(run) : null,
    classes: classRows(sumsOf(run, tallies)),
    trouble: (isMoving ? await runs.trouble(run) : undefined) ?? null,
  }
}

/** What a deletion that waits is approved with. */
export function confirmationOf({ planned, done, refused }: RunRow): string {
  return confirmationText(planned - done - refused)
}

/** What was done, or may have been: an intent is undone as well. What failed to be undone can be tried again. */
export function canUndo(run: RunRow, tallies: readonly Tally[]): boolean {
  if (run.undo === 'undoing') return false
  if (run.undo === 'undone') return tallies.some(({ undo }) => undo === 'failed')
  return tallies.some(({ state }) => state === 'done' || state === 'intent')
}

const UNDO_FAILED = 'undo failed'

function sumsOf(run: RunRow, tallies: readonly Tally[]): Record<string, Sum> {
  const sums: Record<string, Sum> = { ...run.passedOver }
  const add = (what: string, { messages, bytes, example }: Tally): void => {
    const sum = sums[what] ?? { messages: 0, bytes: 0, example }
    sums[what] = { ...sum, messages: sum.messages + messages, bytes: sum.bytes + bytes }
  }
  for (const tally of tallies) {
    if (tally.class !== null) add(tally.class, tally)
    if (tally.undo === 'failed') add(UNDO_FAILED, tally)
  }
  return sums
}

function classRows(sums: Readonly<Record<string, Sum>>): ClassRow[] {
  return Object.entries(sums).map(([what, { messages, bytes, example }]) => ({
    class: what,
    text: what === UNDO_FAILED ? 'could not be undone' : (REFUSAL_TEXTS[what as RefusalClass] ?? what),
    messages,
    bytes,
    example: example ?? null,
  }))
}
