/** A document beside the results: its text around the passage that was found, and who can see it. */
import { useQuery } from '@tanstack/preact-query'
import { useEffect, useRef, useState } from 'preact/hooks'
import { Button } from '../../../../../web/src/components/button.tsx'
import { Icon } from '../../../../../web/src/components/icon.tsx'
import { EmptyNote, Loaded, Note, Skeleton } from '../../../../../web/src/components/notes.tsx'
import { formatBytes, formatExact } from '../../../../../web/src/format.ts'
import { isMember } from '../../../../../web/src/session.ts'
import type { DocumentView } from '../../api/schemas.ts'
import { searchApi } from '../api.ts'
import { sourceIcon, sourceName } from './hit-list.tsx'

/** Chunks before the one that was found. */
const CONTEXT_CHUNKS = 2

export type PreviewProps = { id: number; chunk: number | undefined; as: string; onClose: () => void }

export function Preview({ id, chunk, as, onClose }: PreviewProps) {
  const from = Math.max(0, (chunk ?? 0) - CONTEXT_CHUNKS)
  const document_ = useQuery({
    queryKey: ['find-document', id, as, from],
    queryFn: ({ signal }) => searchApi.read(id, as, from, signal),
    retry: false,
  })
  return (
    <aside class="preview card" aria-label="Document">
      <div class="preview-close">
        <Button kind="quiet" small icon="close" onClick={onClose}>
          Close
        </Button>
      </div>
      <Loaded query={document_} waiting={<Skeleton lines={8} />}>
        {(found) => <PreviewBody document={found} chunk={chunk} />}
      </Loaded>
    </aside>
  )
}

function PreviewBody({ document: found, chunk }: { document: DocumentView; chunk: number | undefined }) {
  const cited = useRef<HTMLDivElement>(null)
  useEffect(() => cited.current?.scrollIntoView({ block: 'nearest' }), [])
  const facts = [
    found.type,
    [sourceName(found.source), ...found.folders].join(' › '),
    found.owner,
    found.modifiedAtMs === null ? '' : formatExact(found.modifiedAtMs),
    found.sizeBytes === null ? '' : formatBytes(found.sizeBytes),
  ]
  return (
    <>
      <h2 class="preview-title">
        <Icon name={sourceIcon(found.source)} /> {found.title}
      </h2>
      <p class="muted small">{facts.filter((fact) => fact !== '').join(' · ')}</p>
      {/^https?:\/\//.test(found.url) ? (
        <p>
          <a class="button button-plain button-small" href={found.url} target="_blank" rel="noreferrer">
            <Icon name="external" /> Open it where it lives
          </a>
        </p>
      ) : null}
      {found.unread ? (
        <Note tone="warn" icon="alert" title="Only its name can be found">
          <p>{found.unread.reason}</p>
        </Note>
      ) : null}
      {found.chunks.length === 0 && !found.unread ? <EmptyNote title="It has no text" /> : null}
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached with the keyboard */}
      <section class="preview-text" tabIndex={0} aria-label="Its text">
        {found.chunks.map(({ n, text, headings, where }) => (
          <div key={n} ref={n === chunk ? cited : undefined} class={`chunk${n === chunk ? ' is-cited' : ''}`}>
            {where === '' && headings.length === 0 ? null : (
              <p class="muted small">{[where, ...headings].filter((part) => part !== '').join(' › ')}</p>
            )}
            <p class="chunk-text">{text}</p>
          </div>
        ))}
        {found.isTruncated ? (
          <p class="muted small">The document goes on; this is as much as is kept of it.</p>
        ) : null}
      </section>
      <Access document={found} />
    </>
  )
}

function Access({ document: found }: { document: DocumentView }) {
  const [isAsked, setAsked] = useState(false)
  const who = useQuery({
    queryKey: ['find-who', found.id],
    queryFn: ({ signal }) => searchApi.who(found.id, signal),
    enabled: isAsked,
  })
  return (
    <section class="preview-access small" aria-label="Access">
      <p class="muted">
        Seen through{' '}
        {found.access
          .map(({ principal, kind, via }) => `${principal} as ${kind}${via === '' ? '' : ` (${via})`}`)
          .join('; ')}
      </p>
      {isMember() ? null : isAsked ? (
        <Loaded query={who} waiting={<Skeleton lines={2} />}>
          {({ items }) => (
            <ul>
              {items.map(({ principal, user, kind, via }) => (
                <li key={principal}>
                  <b>{user ?? 'nobody here'}</b> {principal} as {kind}
                  {via === '' ? '' : `: ${via}`}
                </li>
              ))}
            </ul>
          )}
        </Loaded>
      ) : (
        <Button small onClick={() => setAsked(true)}>
          Who can see this? (it is written down)
        </Button>
      )}
    </section>
  )
}
