/** What was found: links, so that the keyboard, a new tab and a screen reader work as everywhere. */
import { useEffect, useRef } from 'preact/hooks'
import { Link } from 'wouter-preact'
import { Badge } from '../../../../../web/src/components/badge.tsx'
import { Icon } from '../../../../../web/src/components/icon.tsx'
import { Skeleton } from '../../../../../web/src/components/notes.tsx'
import { formatExact } from '../../../../../web/src/format.ts'
import type { SearchHitView } from '../../api/schemas.ts'
import { messageLink } from '../links.ts'
import { rememberOpened, resultKey } from './last-search.ts'
import { isQuietLabel, labelText, mailTime, peopleNames } from './words.ts'

const LABELS_MAX = 3

export type ResultListProps = {
  hits: readonly SearchHitView[]
  showsAccount: boolean
  isStale: boolean
  now: number
}

export function ResultList({ hits, showsAccount, isStale, now }: ResultListProps) {
  return (
    <ol
      class={`results${isStale ? ' is-stale' : ''}`}
      aria-label="Messages found"
      aria-busy={isStale || undefined}
    >
      {hits.map((hit) => (
        <li key={resultKey(hit)} class="result">
          <Result hit={hit} showsAccount={showsAccount} now={now} />
        </li>
      ))}
    </ol>
  )
}

function Result({ hit, showsAccount, now }: { hit: SearchHitView; showsAccount: boolean; now: number }) {
  const labels = hit.labels.filter((name) => !isQuietLabel(name))
  const isUnread = hit.labels.some((name) => name.toUpperCase() === 'UNREAD')
  return (
    <Link
      href={messageLink(hit.account, hit.id)}
      class={`result-link${isUnread ? ' is-unread' : ''}`}
      data-result={resultKey(hit)}
      onClick={() => rememberOpened(resultKey(hit))}
    >
      <span class="result-from truncate">{peopleNames(hit.from)}</span>
      <span class="result-body">
        <span class="result-head">
          <span class="result-subject truncate">{hit.subject || '(no subject)'}</span>
          {hit.deletedAtMs === null ? null : <Badge tone="warn">Deleted in Gmail</Badge>}
          {labels.slice(0, LABELS_MAX).map((name) => (
            <Badge key={name}>{labelText(name)}</Badge>
          ))}
        </span>
        <span class="result-excerpt truncate">
          <Excerpt hit={hit} />
        </span>
      </span>
      <span class="result-side">
        <time class="num" dateTime={isoOf(hit.internalMs)} title={formatExact(hit.internalMs)}>
          {mailTime(hit.internalMs, now)}
        </time>
        <span class="result-marks muted small">
          {hit.attachments > 0 ? (
            <>
              <Icon name="file" />
              <span class="num">{hit.attachments}</span>
              <span class="visually-hidden">{hit.attachments === 1 ? ' attachment' : ' attachments'}</span>
            </>
          ) : null}
          {showsAccount ? <span class="result-account truncate">{hit.account}</span> : null}
        </span>
      </span>
    </Link>
  )
}

function Excerpt({ hit }: { hit: SearchHitView }) {
  if (!hit.excerpt.some(({ text }) => text.trim() !== '')) return <>{hit.snippet}</>
  return <>{hit.excerpt.map((part, at) => (part.match ? <mark key={at}>{part.text}</mark> : part.text))}</>
}

export function ResultSkeletons({ rows }: { rows: number }) {
  return (
    <div class="results" aria-hidden="true">
      {Array.from({ length: rows }, (_, at) => (
        <div key={at} class="result result-link">
          <span class="result-from">
            <Skeleton width="70%" />
          </span>
          <span class="result-body">
            <Skeleton width="45%" height="1.1em" />
            <Skeleton width="90%" />
          </span>
        </div>
      ))}
    </div>
  )
}

/** Asks for more when it comes near the screen. */
export function ListEnd({ onNear, pages }: { onNear: () => void; pages: number }) {
  const mark = useRef<HTMLDivElement>(null)
  const near = useRef(onNear)
  near.current = onNear
  // Watched anew after each page: what is still in sight is told again.
  useEffect(() => {
    const watcher = new IntersectionObserver(
      (entries) => {
        if (entries.some(({ isIntersecting }) => isIntersecting)) near.current()
      },
      { rootMargin: '600px' },
    )
    if (mark.current) watcher.observe(mark.current)
    return () => watcher.disconnect()
  }, [pages])
  return <div ref={mark} class="list-end" aria-hidden="true" />
}

const isoOf = (at: number): string | undefined =>
  Math.abs(at) <= 8.64e15 ? new Date(at).toISOString() : undefined
