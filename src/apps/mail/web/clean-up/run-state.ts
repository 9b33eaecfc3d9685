/** Runs in words, and what can be done with one now. */

import type { Tone } from '../../../../../web/src/components/tone.ts'
import type { ArchiveRunView } from '../../api/schemas.ts'
import type { RunStep } from '../api.ts'

const STATES: Record<string, { text: string; tone: Tone }> = {
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

export const runState = (run: Pick<ArchiveRunView, 'state'>): { text: string; tone: Tone } =>
  STATES[run.state] ?? { text: run.state, tone: 'neutral' }

export const actionText = (action: string): string => ACTION_TEXTS[action] ?? action

export const isMoving = (run: Pick<ArchiveRunView, 'state' | 'trouble'>): boolean =>
  MOVING.has(run.state) && run.trouble === null

/** In the order in which somebody would look for them. */
export function stepsOf(run: Pick<ArchiveRunView, 'state' | 'trouble' | 'canUndo' | 'canResume'>): RunStep[] {
  const steps: RunStep[] = []
  // A run that moves needs no push; one in trouble or waiting does.
  if (run.canResume && !isMoving(run)) steps.push('resume')
  if (HALTABLE.has(run.state) && run.trouble === null) steps.push('halt')
  if (run.canResume) steps.push('abandon')
  if (run.canUndo) steps.push('undo')
  return steps
}
