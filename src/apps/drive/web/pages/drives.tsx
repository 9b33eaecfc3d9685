/** Of each account the books, and of each of its drives; then what is found by its name only, by reason. */
import { useState } from 'preact/hooks'
import { Badge, StateBadge, type StateText } from '../../../../../web/src/components/badge.tsx'
import { Button, ButtonLink } from '../../../../../web/src/components/button.tsx'
import { Card } from '../../../../../web/src/components/card.tsx'
import { AlertLine, EmptyNote, Loaded, Skeleton } from '../../../../../web/src/components/notes.tsx'
import { PageTitle } from '../../../../../web/src/components/page-title.tsx'
import { formatBytes, formatCount, formatDuration, formatExact } from '../../../../../web/src/format.ts'
import { settingsLink } from '../../../../../web/src/links.ts'
import { useAction } from '../../../../../web/src/queries.ts'
import type { DriveFeedView, DriveStatusView } from '../../api/schemas.ts'
import { driveKeys, syncDrive, useDriveStatus, useSkipped } from '../queries.ts'
import '../styles/drives.css'

export function DrivesPage() {
  const status = useDriveStatus()
  return (
    <>
      <PageTitle title="Drive" lead="What Drive lists, and what became of each file of it." />
      <Loaded query={status} waiting={<Skeleton height="12rem" />}>
        {({ accounts }) =>
          accounts.length === 0 ? (
            <EmptyNote
              title="No Google Drive is connected"
              action={
                <ButtonLink href={settingsLink()} kind="primary" icon="person">
                  Connect an account
                </ButtonLink>
              }
            >
              Each document is read once, however many can see it, and found by those who may.
            </EmptyNote>
          ) : (
            <div class="stack">
              {accounts.map((one) => (
                <AccountDrives key={one.account} status={one} />
              ))}
            </div>
          )
        }
      </Loaded>
    </>
  )
}

const STATES: Record<DriveStatusView['status'], StateText> = {
  idle: { text: 'Not begun', tone: 'neutral' },
  discovering: { text: 'Scanning', tone: 'accent' },
  processing: { text: 'Indexing', tone: 'accent' },
  completed: { text: 'Up to date', tone: 'accent' },
  failed: { text: 'Failed', tone: 'danger' },
}

function AccountDrives({ status }: { status: DriveStatusView }) {
  const sync = useAction({ run: () => syncDrive(status.account), invalidates: [driveKeys.status] })
  const { worker, revocations } = status
  return (
    <Card
      title={status.account}
      actions={
        <>
          {status.paused ? <Badge tone="warn">Paused</Badge> : null}
          <StateBadge state={STATES[status.status]} dot />
          <Button
            small
            icon="retry"
            busy={sync.busy}
            aria-label={`Sync now: ${status.account}`}
            onClick={() => void sync.start()}
          >
            Sync now
          </Button>
        </>
      }
    >
      <Books of={status} />
      <p class="muted small">
        {status.lastSyncAtMs === null ? 'Not settled yet' : `All settled ${formatExact(status.lastSyncAtMs)}`}
        {worker === null ? '' : ` · ${worker.name} works on it`}
        {revocations.timed === 0
          ? ''
          : ` · what was unshared was gone here after ${formatDuration(revocations.meanMs ?? 0)} on average, ${formatDuration(revocations.maxMs ?? 0)} at most`}
      </p>
      {worker && !worker.isAlive ? (
        <AlertLine tone="warn">Sync stalled, will recover by itself: {worker.name} is silent.</AlertLine>
      ) : null}
      <Feeds feeds={status.feeds} />
      <Skipped status={status} />
    </Card>
  )
}

type Counted = Pick<DriveFeedView, 'listed' | 'indexed' | 'skipped' | 'failed' | 'onTheirWay'>

/** The same sum everywhere: it must come out even. */
function Books({ of }: { of: Counted }) {
  return (
    <p class="drive-books num">
      Drive lists <b>{formatCount(of.listed)}</b> = {formatCount(of.indexed)} indexed +{' '}
      {formatCount(of.skipped)} skipped + {formatCount(of.failed)} failed + {formatCount(of.onTheirWay)} on
      their way
    </p>
  )
}

const FEED_STATES: Record<DriveFeedView['state'], StateText> = {
  new: { text: 'Not listed yet', tone: 'neutral' },
  listing: { text: 'Being listed', tone: 'accent' },
  following: { text: 'Following changes', tone: 'accent' },
  unreachable: { text: 'Out of reach', tone: 'warn' },
}

function Feeds({ feeds }: { feeds: readonly DriveFeedView[] }) {
  if (feeds.length === 0) return null
  return (
    <ul class="drive-feeds">
      {feeds.map((feed) => (
        <li key={feed.drive}>
          <div class="row">
            <b>{feed.name}</b>
            <StateBadge state={FEED_STATES[feed.state]} />
          </div>
          <Books of={feed} />
          {feed.isIncomplete ? (
            <p class="muted small">Google did not look everywhere the last time; nothing was taken away.</p>
          ) : null}
          {feed.problem === null ? null : <AlertLine tone="warn">{feed.problem}</AlertLine>}
        </li>
      ))}
    </ul>
  )
}

function Skipped({ status }: { status: DriveStatusView }) {
  const [code, setCode] = useState<string>()
  const files = useSkipped(status.account, code, code !== undefined)
  if (status.skippedBy.length === 0) return null
  return (
    <section class="stack" aria-label={`Skipped files of ${status.account}`}>
      <p class="small">Found by their names only:</p>
      <div class="row">
        {status.skippedBy.map((one) => (
          <Button
            key={one.code}
            small
            aria-pressed={one.code === code}
            onClick={() => setCode(one.code === code ? undefined : one.code)}
          >
            {one.code} {formatCount(one.count)}
          </Button>
        ))}
      </div>
      {code === undefined ? null : (
        <Loaded query={files} waiting={<Skeleton lines={4} />}>
          {({ pages }) => (
            <>
              <ul class="drive-skipped small">
                {pages.flatMap(({ items }) =>
                  items.map((file) => (
                    <li key={file.id}>
                      {/^https:\/\//.test(file.url) ? (
                        <a href={file.url} target="_blank" rel="noreferrer">
                          {file.name}
                        </a>
                      ) : (
                        file.name
                      )}{' '}
                      <span class="muted">
                        {file.sizeBytes === null ? '' : `${formatBytes(file.sizeBytes)}, `}
                        {file.reason}
                      </span>
                    </li>
                  )),
                )}
              </ul>
              {files.hasNextPage ? (
                <Button small busy={files.isFetchingNextPage} onClick={() => void files.fetchNextPage()}>
                  More
                </Button>
              ) : null}
            </>
          )}
        </Loaded>
      )}
    </section>
  )
}
