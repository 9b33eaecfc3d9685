/** A run: how far it got, what it left alone, and what can be done with it. */

import { StateBadge } from '../../../../../web/src/components/badge.tsx'
import { Button } from '../../../../../web/src/components/button.tsx'
import { Card } from '../../../../../web/src/components/card.tsx'
import { type ConfirmOptions, useConfirm } from '../../../../../web/src/components/confirm.tsx'
import type { IconName } from '../../../../../web/src/components/icon.tsx'
import { AlertLine } from '../../../../../web/src/components/notes.tsx'
import { ProgressBar } from '../../../../../web/src/components/progress-bar.tsx'
import { Time } from '../../../../../web/src/components/values.tsx'
import { formatBytes, formatCount, formatPlural } from '../../../../../web/src/format.ts'
import { keys, useAction } from '../../../../../web/src/queries.ts'
import type { CleanUpRunView } from '../../api/schemas.ts'
import { mailApi, type RunStep } from '../api.ts'
import { mailKeys } from '../queries.ts'
import { actionText, isMoving, runState, stepsOf } from './clean-up.ts'
import { ClassTable } from './plan-card.tsx'

const STEPS: Record<RunStep, { text: string; icon: IconName }> = {
  resume: { text: 'Go on', icon: 'play' },
  halt: { text: 'Halt', icon: 'pause' },
  abandon: { text: 'Give up', icon: 'close' },
  undo: { text: 'Undo', icon: 'undo' },
}

export function RunCard({ run }: { run: CleanUpRunView }) {
  const settled = run.done + run.refused
  return (
    <Card
      level={3}
      class="run"
      tone={run.trouble === null ? 'neutral' : 'danger'}
      title={`Run ${run.id}: ${actionText(run.action)}`}
      actions={
        <StateBadge
          state={run.trouble === null ? runState(run) : { text: 'Stopped', tone: 'danger' }}
          dot={isMoving(run)}
        />
      }
    >
      <div class="stack run-body">
        <p class="muted small">
          {run.account} · <Time at={run.createdAtMs} />
          {run.query === '' ? '' : ' · '}
          {run.query === '' ? null : <code>{run.query}</code>}
        </p>
        <div class="run-progress">
          <ProgressBar
            done={settled}
            total={run.state === 'planning' || run.planned === 0 ? (isMoving(run) ? null : 1) : run.planned}
            label={`Run ${run.id}`}
            tone={run.trouble === null ? 'accent' : 'danger'}
          />
          <p class="small num">
            <b>{formatCount(run.done)}</b> of {formatPlural(run.planned, 'message')} done
            {run.refused > 0 ? `, ${formatCount(run.refused)} left alone` : ''} · {formatBytes(run.bytes)}
          </p>
        </div>
        {run.trouble === null ? null : <AlertLine tone="danger">{run.trouble}</AlertLine>}
        {run.classes.length > 0 ? (
          <details>
            <summary class="small">What was left alone, and why</summary>
            <ClassTable account={run.account} classes={run.classes} caption={`Left alone by run ${run.id}`} />
          </details>
        ) : null}
        <Steps run={run} />
      </div>
    </Card>
  )
}

function Steps({ run }: { run: CleanUpRunView }) {
  const confirm = useConfirm()
  const step = useAction<{ step: RunStep; confirm?: string }>({
    run: (wish) => mailApi.stepCleanUp(run.id, wish.step, wish.confirm),
    invalidates: [mailKeys.cleanUp, keys.accounts],
  })
  const steps = stepsOf(run)
  if (steps.length === 0) return null
  const start = async (which: RunStep): Promise<void> => {
    const question = questionFor(run, which)
    if (question && !(await confirm(question))) return
    await step.start({ step: which, ...(which === 'resume' && run.confirm ? { confirm: run.confirm } : {}) })
  }
  return (
    <div class="row">
      {steps.map((which) => (
        <Button
          key={which}
          small
          icon={STEPS[which].icon}
          busy={step.busy}
          aria-label={`${STEPS[which].text}: run ${run.id}`}
          onClick={() => void start(which)}
        >
          {STEPS[which].text}
        </Button>
      ))}
    </div>
  )
}

/** Halting can be taken back by going on; the rest is asked about. */
function questionFor(run: CleanUpRunView, step: RunStep): ConfirmOptions | undefined {
  const done = formatPlural(run.done, 'message')
  if (step === 'undo') {
    return {
      title: `Undo run ${run.id}?`,
      text: `What it did to ${done} is taken back in Gmail${run.action === 'delete' ? ': they are put in again from the archive, which costs quota' : ''}.`,
      action: 'Undo',
    }
  }
  if (step === 'abandon') {
    return {
      title: `Give up run ${run.id}?`,
      text: `What is done stays done (${done}); the rest is left alone. It cannot be resumed.`,
      action: 'Give up',
      danger: true,
    }
  }
  if (step === 'resume' && run.confirm !== null) {
    return {
      title: `Go on with deleting?`,
      text: `Run ${run.id} deletes from ${run.account} for good.`,
      action: 'Delete for good',
      danger: true,
      typed: run.confirm,
    }
  }
  return undefined
}
