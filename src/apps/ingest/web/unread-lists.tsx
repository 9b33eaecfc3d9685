/**
 * What could not be read: lines of objects, and messages. All of it comes from strangers, so it is shown as text only, cut
 * to a length, with the signs made visible that would change how the text around it reads.
 */
import { Link } from 'wouter-preact'
import { Badge } from '../../../../web/src/components/badge.tsx'
import { Button } from '../../../../web/src/components/button.tsx'
import { EmptyNote, ErrorNote, Loaded, Skeleton } from '../../../../web/src/components/notes.tsx'
import { Time } from '../../../../web/src/components/values.tsx'
import { formatCount, formatPlural } from '../../../../web/src/format.ts'
import { useAction } from '../../../../web/src/queries.ts'
import type { QuarantinedView } from '../api/schemas.ts'
import { ingestKeys, objectLink, replay, useQuarantine, useUnparsed } from './queries.ts'

const CHARS_MAX = 600
/** Control signs, and those that turn the direction of writing or take no room. */
const UNSEEN = /[\p{Cc}\p{Cf}\u2028\u2029]/gu

export function shownText(text: string): string {
  const cut = text.length > CHARS_MAX ? `${text.slice(0, CHARS_MAX)} …` : text
  return cut.toWellFormed().replace(UNSEEN, (sign) => {
    if (sign === '\n' || sign === '\t') return sign
    return `<${sign.codePointAt(0)!.toString(16).padStart(4, '0')}>`
  })
}

const TOUCHED = [ingestKeys.pipelines, ingestKeys.object, ingestKeys.objects, ingestKeys.quarantine]

/** Of one object where `shard` is given; then it says nothing where there is nothing. */
export function QuarantineList({ pipeline, shard }: { pipeline: string; shard?: string }) {
  const { rows, error, refetch, isLoading, isComplete, loadMore } = useQuarantine(pipeline, shard)
  if (error && rows.length === 0) return <ErrorNote error={error} retry={refetch} />
  if (rows.length === 0 && isLoading) return <Skeleton lines={4} />
  if (rows.length === 0) {
    return <EmptyNote title="Nothing is in quarantine">Every record that was read could be read.</EmptyNote>
  }
  return (
    <>
      <ul class="ingest-unread">
        {rows.map((row) => (
          <Quarantined
            key={`${row.shard} ${row.at}`}
            row={row}
            pipeline={pipeline}
            isAlone={shard !== undefined}
          />
        ))}
      </ul>
      {isComplete ? null : (
        <Button small busy={isLoading} onClick={loadMore}>
          More
        </Button>
      )}
    </>
  )
}

function Quarantined(props: { row: QuarantinedView; pipeline: string; isAlone: boolean }) {
  const { row, pipeline, isAlone } = props
  const again = useAction({
    run: () => replay({ pipeline, shard: row.shard, at: row.at }),
    invalidates: TOUCHED,
  })
  const place = row.line === null ? `record ${formatCount(row.at + 1)}` : `line ${formatCount(row.line)}`
  return (
    <li>
      <div class="row">
        <Badge tone="warn">{row.code}</Badge>
        {isAlone ? (
          <span>{place}</span>
        ) : (
          <Link href={objectLink({ pipeline, id: row.shard })} class="ingest-text">
            {row.uri}, {place}
          </Link>
        )}
        <Button
          small
          icon="retry"
          busy={again.busy}
          aria-label={`Replay ${place} of ${row.uri}`}
          onClick={() => void again.start()}
        >
          Replay
        </Button>
      </div>
      <p class="small ingest-text">{shownText(row.reason)}</p>
      <pre class="ingest-excerpt mono">{shownText(row.excerpt)}</pre>
      <p class="muted small">
        Quarantined <Time at={row.createdAtMs} />
        {row.triedAtMs === null ? null : (
          <>
            , tried again <Time at={row.triedAtMs} />
          </>
        )}
      </p>
    </li>
  )
}

/** For all of an object at once. */
export function ReplayAll({ pipeline, shard, count }: { pipeline: string; shard: string; count: number }) {
  const again = useAction({ run: () => replay({ pipeline, shard }), invalidates: TOUCHED })
  if (count === 0) return null
  return (
    <Button icon="retry" busy={again.busy} onClick={() => void again.start()}>
      Replay {formatPlural(count, 'record')}
    </Button>
  )
}

export function UnparsedList({ pipeline }: { pipeline: string }) {
  return (
    <Loaded query={useUnparsed(pipeline)} waiting={<Skeleton lines={4} />}>
      {({ items }) =>
        items.length === 0 ? (
          <EmptyNote title="Every message was understood">
            One that is not stays in the queue, whose own rules take care of it, and stands here.
          </EmptyNote>
        ) : (
          <ul class="ingest-unread">
            {items.map((one) => (
              <li key={one.message}>
                <div class="row">
                  <Badge tone="warn">{one.code}</Badge>
                  <span class="muted small">
                    delivered {formatPlural(one.deliveries, 'time')}, the last <Time at={one.lastAtMs} />
                  </span>
                </div>
                <p class="small ingest-text">{shownText(one.reason)}</p>
                <pre class="ingest-excerpt mono">{shownText(one.excerpt)}</pre>
              </li>
            ))}
          </ul>
        )
      }
    </Loaded>
  )
}
