/** Pauses a stream, a kind of jobs or everything, and lets it go on. */
import type { QueryKey } from '@tanstack/preact-query'
import { api, type PauseTarget } from '../api.ts'
import { keys, useAction } from '../queries.ts'
import { Button } from './button.tsx'

type PauseButtonProps = {
  target: PauseTarget
  isPaused: boolean
  /** Shown wherever the pause is shown. */
  reason?: string
  /** Behind the word on the button: "everything". */
  what?: string
  small?: boolean
  invalidates?: readonly QueryKey[]
}

export function PauseButton({ target, isPaused, reason, what, small, invalidates = [] }: PauseButtonProps) {
  const change = useAction({
    run: () => (isPaused ? api.resume(target) : api.pause({ ...target, reason })),
    invalidates: [keys.accounts, ...invalidates],
  })
  return (
    <Button
      small={small}
      kind={isPaused && !small ? 'primary' : 'plain'}
      icon={isPaused ? 'play' : 'pause'}
      busy={change.busy}
      onClick={() => void change.start()}
    >
      {isPaused ? 'Resume' : 'Pause'} {what}
    </Button>
  )
}

/** Looks at a source now, instead of when its time comes. */
export function SyncButton(props: {
  run: () => ReturnType<typeof api.pause>
  small?: boolean
  disabled?: boolean
  invalidates: readonly QueryKey[]
}) {
  const { run, small, disabled, invalidates } = props
  const sync = useAction({ run, invalidates })
  return (
    <Button small={small} icon="retry" busy={sync.busy} disabled={disabled} onClick={() => void sync.start()}>
      Sync now
    </Button>
  )
}
