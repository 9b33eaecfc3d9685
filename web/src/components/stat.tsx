import type { ComponentChildren } from 'preact'
import { Link } from 'wouter-preact'
import type { Tone } from './tone.ts'

export type StatProps = {
  label: string
  value: ComponentChildren
  hint?: ComponentChildren
  tone?: Tone
  href?: string
}

/** One figure; several of them stand in a `<dl class="stats">`. */
export function Stat({ label, value, hint, tone = 'neutral', href }: StatProps) {
  return (
    <div class={`stat tone-${tone}`}>
      <dt>{href ? <Link href={href}>{label}</Link> : label}</dt>
      <dd class="stat-value num">{value}</dd>
      {hint === undefined ? null : <dd class="stat-hint">{hint}</dd>}
    </div>
  )
}
