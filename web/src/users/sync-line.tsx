/** How far the accounts of a user are, in words, and looking for what is new at once. */
import { useQuery, useQueryClient } from '@tanstack/preact-query'
import { useState } from 'preact/hooks'
import type { SyncStatus } from '../../../src/app/users/schemas.ts'
import { api } from '../api.ts'
import { Badge } from '../components/badge.tsx'
import { Button } from '../components/button.tsx'
import { Card } from '../components/card.tsx'
import { ErrorNote, Skeleton } from '../components/notes.tsx'
import { showToast } from '../components/toast-store.ts'
import type { Tone } from '../components/tone.ts'
import { useLookMs } from '../live-state.ts'
import { keys } from '../queries.ts'
import { currentUser } from '../session.ts'

const LOOK_MS = 5_000

const TONES: Record<SyncStatus['phase'], Tone> = {
  idle: 'accent',
  discovering: 'neutral',
  processing: 'neutral',
  stalled: 'warn',
  failed: 'danger',
}

export const useSyncStatus = (userId: number) =>
  useQuery({
    queryKey: [...keys.sync, userId],
    queryFn: ({ signal }) => api.syncStatus(userId, signal),
    refetchInterval: useLookMs(LOOK_MS),
  })

export function SyncLine({ userId, name }: { userId: number; name: string }) {
  const { data, error } = useSyncStatus(userId)
  if (error && !data) return <ErrorNote error={error} />
  if (!data) return <Skeleton width="14rem" />
  return (
    <div class="sync-line">
      <Badge tone={TONES[data.phase]} dot>
        {data.text}
      </Badge>
      {data.sources.length > 0 ? <SyncButton userId={userId} name={name} /> : null}
      {data.sources.length > 1 ? (
        <ul class="sync-sources muted small">
          {data.sources.map(({ app, source, text }) => (
            <li key={`${app}:${source}`}>
              {app} · {source}: {text}
            </li>
          ))}
        </ul>
      ) : null}
    </div>
  )
}

function SyncButton({ userId, name }: { userId: number; name: string }) {
  const client = useQueryClient()
  const [busy, setBusy] = useState(false)
  const sync = async (): Promise<void> => {
    setBusy(true)
    try {
      const { text, begun } = await api.syncUser(userId)
      showToast(text, { tone: begun ? 'accent' : 'warn' })
      void client.invalidateQueries({ queryKey: keys.sync })
    } catch (thrown) {
      showToast(thrown instanceof Error ? thrown.message : 'That did not work.', { tone: 'danger' })
    } finally {
      setBusy(false)
    }
  }
  return (
    <Button small icon="retry" busy={busy} aria-label={`Sync now: ${name}`} onClick={() => void sync()}>
      Sync now
    </Button>
  )
}

/** For members, on their page of settings. */
export function OwnSync() {
  const user = currentUser()
  if (!user) return null
  return (
    <section class="stack" aria-label="Your accounts">
      <h2>How far your accounts are</h2>
      <Card>
        <SyncLine userId={user.id} name={user.name} />
      </Card>
    </section>
  )
}
