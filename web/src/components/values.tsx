/** Times, sizes and numbers as elements: with the exact value for machines and for a closer look. */
import {
  formatAgo,
  formatBytes,
  formatClock,
  formatCount,
  formatDay,
  formatExact,
  formatTime,
} from '../format.ts'
import { useNow } from '../queries.ts'

export function Time({ at, show = 'ago' }: { at: number | null; show?: 'ago' | 'full' | 'day' | 'clock' }) {
  if (at === null) return <span class="muted">–</span>
  if (show === 'ago') return <Ago at={at} />
  const text = show === 'day' ? formatDay(at) : show === 'clock' ? formatClock(at) : formatTime(at)
  return <Stamp at={at} text={text} />
}

function Ago({ at }: { at: number }) {
  const now = useNow(5_000)
  return <Stamp at={at} text={formatAgo(at, Math.max(now, at > now && at - now < 5_000 ? at : now))} />
}

function Stamp({ at, text }: { at: number; text: string }) {
  const iso = Math.abs(at) <= 8.64e15 ? new Date(at).toISOString() : undefined
  return (
    <time class="num" dateTime={iso} title={formatExact(at)}>
      {text}
    </time>
  )
}

export function Bytes({ value }: { value: number }) {
  return (
    <data class="num" value={String(value)} title={`${formatCount(value)} B`}>
      {formatBytes(value)}
    </data>
  )
}

export function Count({ value }: { value: number }) {
  return (
    <data class="num" value={String(value)}>
      {formatCount(value)}
    </data>
  )
}
