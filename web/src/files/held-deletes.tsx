/** Many deletions at once: what would be deleted on which side, and saying yes with their number. */
import { useQuery } from '@tanstack/preact-query'
import { useEffect, useId, useRef, useState } from 'preact/hooks'
import type { DriveView, HeldDeletesView } from '../../../src/server/files-api/schemas.ts'
import { api } from '../api.ts'
import { Button } from '../components/button.tsx'
import { Icon } from '../components/icon.tsx'
import { ErrorNote, Skeleton } from '../components/notes.tsx'
import { formatCount, formatPlural } from '../format.ts'
import { keys, useAction } from '../queries.ts'

export function HeldDeletes({ drive }: { drive: DriveView }) {
  const [isOpen, setOpen] = useState(false)
  const { heldDeletes } = drive
  if (!heldDeletes) return null
  const count = heldDeletes.local + heldDeletes.remote
  return (
    <div class="note tone-danger" id="deletes" tabIndex={-1}>
      <Icon name="alert" />
      <div class="note-body">
        <p class="note-title">{formatPlural(count, 'deletion')} at once: nothing was deleted yet</p>
        <p>
          So many may be a wrong click, or a folder that is not what it seems. If you did not mean it, bring
          back what is missing, and all is well again. Or stop keeping the folder in step, at the end of this
          page, and add it again: what is missing then comes back from the other side. What a setting left out
          takes part then, too.
        </p>
        <Button small onClick={() => setOpen(true)}>
          See what would be deleted
        </Button>
      </div>
      {isOpen ? <DeletesDialog name={drive.name} onClose={() => setOpen(false)} /> : null}
    </div>
  )
}

function DeletesDialog({ name, onClose }: { name: string; onClose: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null)
  const id = useId()
  const [typed, setTyped] = useState('')
  const { data, error, refetch } = useQuery({
    queryKey: [...keys.fileParts, 'held', name],
    queryFn: ({ signal }) => api.heldDeletes(name, signal),
  })
  const allow = useAction({
    run: (count: number) => api.allowDeletes(name, count),
    invalidates: [keys.files, keys.fileParts],
  })
  useEffect(() => {
    dialog.current?.showModal()
  }, [])
  const close = (): void => {
    dialog.current?.close()
    onClose()
  }
  const total = data?.total ?? 0
  const isReady = total > 0 && typed.trim() === String(total)
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault()
    if (isReady && (await allow.start(total))) close()
  }
  return (
    <dialog ref={dialog} class="dialog deletes-dialog" aria-labelledby={id} onCancel={close}>
      <form method="dialog" class="stack" onSubmit={(event) => void submit(event)}>
        <h2 id={id}>Delete {data ? formatPlural(total, 'thing') : '…'}?</h2>
        {error && !data ? <ErrorNote error={error} retry={refetch} /> : null}
        {!data && !error ? <Skeleton lines={6} /> : null}
        {data ? <What held={data} /> : null}
        {data && total > 0 ? (
          <label class="field">
            <span class="field-label">
              Type <code>{total}</code> to go on
            </span>
            <input
              class="input"
              autocomplete="off"
              inputMode="numeric"
              value={typed}
              onInput={(event) => setTyped(event.currentTarget.value)}
            />
          </label>
        ) : null}
        <div class="row row-end">
          <Button onClick={close}>Leave everything as it is</Button>
          <Button type="submit" kind="danger" busy={allow.busy} disabled={!isReady}>
            Delete {formatCount(total)}
          </Button>
        </div>
      </form>
    </dialog>
  )
}

function What({ held }: { held: HeldDeletesView }) {
  if (held.total === 0) return <p>They are no longer waiting: nothing is to be decided.</p>
  const rest = held.total - held.items.length
  return (
    <>
      <p>
        {[
          ...(held.there > 0 ? [`${formatPlural(held.there, 'item')} in OneDrive, to its recycle bin`] : []),
          ...(held.here > 0 ? [`${formatPlural(held.here, 'item')} in the folder, to its trash`] : []),
        ].join('; ')}
        .
      </p>
      <section
        class="deletes-list small"
        aria-label="Some of them"
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by the keyboard
        tabIndex={0}
      >
        <ul>
          {held.items.map(({ node, path, side }) => (
            <li key={node}>
              <span class="path">{path}</span>{' '}
              <span class="muted">{side === 'here' ? 'here' : 'in OneDrive'}</span>
            </li>
          ))}
          {rest > 0 ? <li class="muted">and {formatCount(rest)} more</li> : null}
        </ul>
      </section>
    </>
  )
}
