import type { ComponentChildren } from 'preact'
import type { JobView, StreamView } from '../../../src/app/schemas.ts'
import type { Tone } from './tone.ts'

export function Badge(props: { tone?: Tone; dot?: boolean; children: ComponentChildren }) {
  return (
    <span class={`badge tone-${props.tone ?? 'neutral'}`}>
      {props.dot ? <span class="dot" aria-hidden="true" /> : null}
      {props.children}
    </span>
  )
}

/** How something is, in a word and its colour. */
export type StateText = { text: string; tone: Tone }

export function StateBadge({ state: { text, tone }, dot }: { state: StateText; dot?: boolean }) {
  return (
    <Badge tone={tone} dot={dot}>
      {text}
    </Badge>
  )
}

const HEALTH: Record<StreamView['health'], StateText> = {
  ok: { tone: 'accent', text: 'In step' },
  working: { tone: 'accent', text: 'Working' },
  paused: { tone: 'warn', text: 'Paused' },
  trouble: { tone: 'danger', text: 'Needs you' },
}

export function HealthBadge({ health }: { health: StreamView['health'] }) {
  return <StateBadge state={HEALTH[health]} dot />
}

const STAGE: Record<JobView['stage'], StateText> = {
  ready: { tone: 'neutral', text: 'Ready' },
  deps: { tone: 'neutral', text: 'Waits for others' },
  time: { tone: 'neutral', text: 'Waits for its time' },
  claimed: { tone: 'accent', text: 'Running' },
  done: { tone: 'accent', text: 'Done' },
  failed: { tone: 'danger', text: 'Failed' },
  canceled: { tone: 'warn', text: 'Cancelled' },
  skipped: { tone: 'neutral', text: 'Skipped' },
}

export function StageBadge({ stage }: { stage: JobView['stage'] }) {
  return <StateBadge state={STAGE[stage]} dot={stage === 'claimed'} />
}
