import { formatShare } from '../format.ts'
import type { Tone } from './tone.ts'

/** `total: null` where nobody knows: a bar that says only that something goes on. */
export function ProgressBar(props: { done: number; total: number | null; label: string; tone?: Tone }) {
  const { done, total, label, tone = 'accent' } = props
  const share = total !== null && total > 0 ? Math.min(1, Math.max(0, done / total)) : null
  return (
    <div
      class={`progress tone-${tone}${share === null ? ' progress-open' : ''}`}
      role="progressbar"
      aria-label={label}
      aria-valuemin={0}
      aria-valuemax={100}
      aria-valuenow={share === null ? undefined : Math.floor(share * 100)}
      aria-valuetext={share === null ? 'under way' : formatShare(share)}
    >
      <div class="progress-fill" style={{ transform: share === null ? undefined : `scaleX(${share})` }} />
    </div>
  )
}
