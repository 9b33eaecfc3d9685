/** One conflict: both versions side by side, and which one is kept. */

import { useQuery } from '@tanstack/preact-query'
import { useMemo } from 'preact/hooks'
import { useParams } from 'wouter-preact'
import { Badge } from '../../../../../web/src/components/badge.tsx'
import { Button } from '../../../../../web/src/components/button.tsx'
import { Card } from '../../../../../web/src/components/card.tsx'
import { ErrorNote, Skeleton } from '../../../../../web/src/components/notes.tsx'
import { PageTitle } from '../../../../../web/src/components/page-title.tsx'
import { Bytes, Time } from '../../../../../web/src/components/values.tsx'
import { pathPart } from '../../../../../web/src/links.ts'
import { useAction } from '../../../../../web/src/queries.ts'
import { useTicket } from '../../../../../web/src/ticket.tsx'
import type { ConflictDetail, ConflictSide } from '../../api/schemas.ts'
import { conflictPath, filesApi } from '../api.ts'
import { CONFLICT_KINDS, CONFLICT_STATES } from '../folder-state.ts'
import { filesLink, folderLink } from '../links.ts'
import { fileKeys } from '../queries.ts'
import { type DiffLine, type DiffSide, differenceText, textDiff } from '../text-diff.ts'
import '../styles/files.css'

export function ConflictPage() {
  const params = useParams<{ name: string; id: string }>()
  const name = pathPart(params.name)
  const id = Number(params.id)
  const { data, error, refetch } = useQuery({
    queryKey: [...fileKeys.fileParts, 'conflict', name, id],
    queryFn: ({ signal }) => filesApi.conflict(name, id, signal),
  })
  const diff = useMemo(() => (data ? diffOf(data) : undefined), [data])
  return (
    <>
      <PageTitle
        title={data ? (data.path.split('/').at(-1) ?? data.path) : 'Conflict'}
        crumbs={[
          { text: 'Files', href: filesLink() },
          { text: name, href: folderLink(name, 'conflicts') },
        ]}
        lead={data ? <Lead conflict={data} /> : error ? undefined : <Skeleton width="18rem" />}
      >
        {data ? (
          <Badge tone={CONFLICT_STATES[data.state].tone}>{CONFLICT_STATES[data.state].text}</Badge>
        ) : null}
      </PageTitle>
      {error && !data ? <ErrorNote error={error} retry={refetch} /> : null}
      {!data && !error ? <Skeleton height="20rem" /> : null}
      {data ? (
        <div class="stack">
          <div class="versions">
            <Version
              folder={name}
              id={id}
              which="here"
              side={data.here}
              lines={diff?.here.lines}
              difference={diff && differenceText(diff.here, diff.there)}
            />
            <Version
              folder={name}
              id={id}
              which="there"
              side={data.there}
              lines={diff?.there.lines}
              difference={diff && differenceText(diff.there, diff.here)}
            />
          </div>
          <Decision folder={name} conflict={data} />
        </div>
      ) : null}
    </>
  )
}

function Lead({ conflict }: { conflict: ConflictDetail }) {
  return (
    <>
      {CONFLICT_KINDS[conflict.kind]}, <Time at={conflict.at} />: <span class="path">{conflict.path}</span>
    </>
  )
}

const TITLES = { here: 'In the folder', there: 'In OneDrive' } as const

/** Of two texts; undefined where one of them is none. */
function diffOf({ here, there }: ConflictDetail): Record<'here' | 'there', DiffSide> | undefined {
  if (here.preview !== 'text' || there.preview !== 'text') return undefined
  const diff = textDiff(here.text ?? '', there.text ?? '')
  return {
    here: { text: here.text ?? '', isWhole: here.isWhole, lines: diff.here },
    there: { text: there.text ?? '', isWhole: there.isWhole, lines: diff.there },
  }
}

type VersionProps = {
  folder: string
  id: number
  which: 'here' | 'there'
  side: ConflictSide
  /** Its text, with what is not in the other one. */
  lines: readonly DiffLine[] | undefined
  /** The same in words. */
  difference: string | undefined
}

function Version({ folder, id, which, side, lines, difference }: VersionProps) {
  return (
    <Card title={TITLES[which]} class="version">
      <p class="muted small">
        {side.bytes === null ? null : (
          <>
            <Bytes value={side.bytes} />, changed <Time at={side.modifiedMs} show="full" />
          </>
        )}
        {side.path === null ? null : (
          <>
            <br />
            <span class="path">{side.path}</span>
          </>
        )}
      </p>
      {difference === undefined ? null : <p class="small version-differs">{difference}</p>}
      {side.preview === 'text' ? (
        <section
          class="version-text"
          aria-label={`The text ${TITLES[which].toLowerCase()}`}
          // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by the keyboard
          tabIndex={0}
        >
          <pre class="mono">{lines ? <Lines lines={lines} /> : side.text}</pre>
          {side.isWhole ? null : <p class="muted small">Only the beginning is shown.</p>}
        </section>
      ) : null}
      {side.preview === 'image' ? (
        <VersionImage
          path={`${conflictPath(folder, id)}/image?side=${which}`}
          alt={`The version ${TITLES[which].toLowerCase()}`}
        />
      ) : null}
      {side.note === null ? null : <p class="muted">{side.note}</p>}
    </Card>
  )
}

function Lines({ lines }: { lines: readonly DiffLine[] }) {
  return (
    <>
      {lines.map(({ parts, isDifferent }, at) => (
        <span key={at} class={`diff-row${isDifferent ? ' is-different' : ''}`}>
          {parts.map((part, place) => (part.isDifferent ? <mark key={place}>{part.text}</mark> : part.text))}
          {at < lines.length - 1 ? '\n' : ''}
        </span>
      ))}
    </>
  )
}

function VersionImage({ path, alt }: { path: string; alt: string }) {
  const { href, error } = useTicket(path)
  return error ? <ErrorNote error={error} /> : <img class="version-image" src={href} alt={alt} />
}

const CHOICES = [
  {
    keep: 'both',
    text: 'Keep both',
    hint: 'The one in the folder gets another name; both are on both sides.',
  },
  { keep: 'local', text: 'Keep the one in the folder', hint: 'The other goes to the trash of the folder.' },
  { keep: 'remote', text: 'Keep the one in OneDrive', hint: 'The other goes to the trash of the folder.' },
] as const

function Decision({ folder, conflict }: { folder: string; conflict: ConflictDetail }) {
  const resolve = useAction({
    run: (keep: 'both' | 'local' | 'remote') => filesApi.resolveConflict(folder, conflict.id, keep),
    invalidates: [fileKeys.files, fileKeys.fileParts, ['list', 'file-conflicts', folder]],
  })
  if (!conflict.canResolve) {
    return (
      <p class="muted">
        Decided <Time at={conflict.resolvedAt ?? conflict.at} />: {conflict.outcome}
      </p>
    )
  }
  return (
    <Card title="Which one counts?">
      <ul class="choices">
        {CHOICES.map(({ keep, text, hint }) => (
          <li key={keep}>
            <Button
              kind={keep === 'both' ? 'primary' : 'plain'}
              busy={resolve.busy}
              onClick={() => void resolve.start(keep)}
            >
              {text}
            </Button>
            <span class="muted small">{hint}</span>
          </li>
        ))}
      </ul>
    </Card>
  )
}
