import type { StreamView } from '../../../src/app/schemas.ts'
import { FrontierStrip } from '../charts/frontier-strip.tsx'
import { HealthBadge } from '../components/badge.tsx'
import { BalanceLine } from '../components/balance-line.tsx'
import { Card } from '../components/card.tsx'
import { Skeleton } from '../components/notes.tsx'
import { formatDuration, formatMark, formatRate, formatShare } from '../format.ts'
import { streamLink } from '../links.ts'
import { homeLink, streamTitle } from '../stream-name.ts'
import { useShare } from './share.ts'

export function StreamCard({ stream }: { stream: StreamView }) {
  const { title, kind } = streamTitle(stream.name)
  const href = streamLink(stream.name)
  const share = useShare([stream])
  return (
    <Card
      class="stream-card"
      href={homeLink(stream.name)}
      title={title}
      tone={stream.health === 'trouble' ? 'danger' : 'neutral'}
      actions={
        <>
          <span class="muted small">{kind}</span>
          <HealthBadge health={stream.health} />
        </>
      }
    >
      <p class="stream-summary">{stream.summary}</p>
      <FrontierStrip stream={stream.name} />
      <BalanceLine plain counts={stream} badHref={`${href}#bad`} />
      <dl class="stream-facts">
        <div>
          <dt>Complete up to</dt>
          <dd class="num">{formatMark(stream.mark)}</dd>
        </div>
        <div>
          <dt>Accounted for</dt>
          <dd class="num">{share === null ? '–' : formatShare(share)}</dd>
        </div>
        <div>
          <dt>Speed</dt>
          <dd class="num">{formatRate(stream.rate)}</dd>
        </div>
        <div>
          <dt>Time left</dt>
          <dd class="num">{timeLeft(stream)}</dd>
        </div>
      </dl>
    </Card>
  )
}

function timeLeft({ etaMs, onTheirWay, segments, settledSegments }: StreamView): string {
  if (etaMs !== null && etaMs > 0) return formatDuration(etaMs)
  return onTheirWay === 0 && settledSegments === segments ? 'done' : 'unknown'
}

export function StreamCardSkeleton() {
  return (
    <Card class="stream-card">
      <Skeleton width="16rem" height="1.3rem" />
      <Skeleton width="24rem" />
      <Skeleton height="2.6rem" />
      <Skeleton height="0.5rem" />
      <Skeleton lines={2} />
      <Skeleton height="2.6rem" />
    </Card>
  )
}
