/** What was found, a document each: where it is, the passage that fits, and why it was found. */
import { useEffect, useRef } from 'preact/hooks'
import { Icon, type IconName } from '../../../../../web/src/components/icon.tsx'
import { formatAgo, formatExact } from '../../../../../web/src/format.ts'
import type { HitView } from '../../api/schemas.ts'

export const sourceIcon = (source: string): IconName =>
  (({ mail: 'mail', files: 'folder', drive: 'archive', ingest: 'download' }) as Record<string, IconName>)[
    source
  ] ?? 'file'

export const sourceName = (source: string): string =>
  ({ mail: 'Mail', files: 'Files', drive: 'Drive', ingest: 'Ingest' })[source] ?? source

export type HitListProps = {
  hits: readonly HitView[]
  openId: number | undefined
  isStale: boolean
  now: number
  onOpen: (hit: HitView) => void
}

export function HitList({ hits, openId, isStale, now, onOpen }: HitListProps) {
  return (
    <ol
      class={`hits${isStale ? ' is-stale' : ''}`}
      aria-label="Documents found"
      aria-busy={isStale || undefined}
    >
      {hits.map((hit) => (
        <li key={hit.id} class="hit">
          <button
            type="button"
            class="hit-button"
            data-hit={hit.id}
            aria-pressed={hit.id === openId}
            onClick={() => onOpen(hit)}
          >
            <HitBody hit={hit} now={now} />
          </button>
          <details class="hit-why small">
            <summary>Why this was found</summary>
            <ul>
              {hit.why.texts.map((text) => (
                <li key={text}>{text}</li>
              ))}
            </ul>
          </details>
        </li>
      ))}
    </ol>
  )
}

function HitBody({ hit, now }: { hit: HitView; now: number }) {
  const place = [sourceName(hit.source), ...hit.folders].join(' › ')
  return (
    <>
      <span class="hit-head">
        <Icon name={sourceIcon(hit.source)} />
        <span class="hit-title">
          <MarkedText parts={hit.title} />
        </span>
        {hit.modifiedAtMs === null ? null : (
          <time
            class="muted small num"
            dateTime={isoOf(hit.modifiedAtMs)}
            title={formatExact(hit.modifiedAtMs)}
          >
            {formatAgo(hit.modifiedAtMs, now)}
          </time>
        )}
      </span>
      <span class="hit-place muted small">
        {hit.type} · {place}
        {hit.owner === '' ? '' : ` · ${hit.owner}`}
      </span>
      <span class="hit-snippet">
        <MarkedText parts={hit.snippet} />
      </span>
      {hit.citation && hit.citation.text !== '' ? (
        <span class="hit-cited muted small">{hit.citation.text}</span>
      ) : null}
      {hit.alsoIn.length > 0 ? (
        <span class="hit-also muted small">
          Also in {hit.alsoIn.map(({ title, folders }) => [...folders, title].join(' › ')).join('; ')}
        </span>
      ) : null}
    </>
  )
}

export function MarkedText({ parts }: { parts: HitView['title'] }) {
  return <>{parts.map((part, at) => (part.found ? <mark key={at}>{part.text}</mark> : part.text))}</>
}

const isoOf = (at: number): string | undefined =>
  Math.abs(at) <= 8.64e15 ? new Date(at).toISOString() : undefined

/** Asks for more when it comes near the screen. */
export function ListEnd({ onNear, pages }: { onNear: () => void; pages: number }) {
  const mark = useRef<HTMLDivElement>(null)
  const near = useRef(onNear)
  near.current = onNear
  useEffect(() => {
    const watcher = new IntersectionObserver(
      (entries) => {
        if (entries.some(({ isIntersecting }) => isIntersecting)) near.current()
      },
      { rootMargin: '400px' },
    )
    if (mark.current) watcher.observe(mark.current)
    return () => watcher.disconnect()
  }, [pages])
  return <div ref={mark} aria-hidden="true" />
}
