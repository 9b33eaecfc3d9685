/** Many deletions or replaced files at once: what they are, on which side, and saying yes with their number. */

import { useQuery } from '@tanstack/preact-query'
import { useEffect, useId, useRef, useState } from 'preact/hooks'
import { Button } from '../../../../web/src/components/button.tsx'
import { Icon } from '../../../../web/src/components/icon.tsx'
import { ErrorNote, Skeleton } from '../../../../web/src/components/notes.tsx'
import { formatCount, formatPlural } from '../../../../web/src/format.ts'
import { useAction } from '../../../../web/src/queries.ts'
import type { FolderView, HeldDeletesView } from '../api/schemas.ts'
import { filesApi } from './api.ts'
import { heldWords } from './folder-state.ts'
import { fileKeys } from './queries.ts'

export function HeldDeletes({ folder }: { folder: FolderView }) {
  const [isOpen, setOpen] = useState(false)
  const { heldDeletes } = folder
  if (!heldDeletes) return null
  const { local = 0, remote = 0 } = heldDeletes.replaced ?? {}
  const hasReplaced = local + remote > 0
  return (
    <div class="note tone-danger" id="deletes" tabIndex={-1}>
      <Icon name="alert" />
      <div class="note-body">
        <p class="note-title">{heldWords(heldDeletes)} at once: nothing of that was done yet</p>
        <p>
          So many may be a wrong click, or a folder that is not what it seems. If you did not mean it, bring
          back what is missing, and all is well again. Or stop keeping the folder in step, at the end of this
          page, and add it again: what is missing then comes back from the other side
          {hasReplaced ? ', and of what differs both versions are kept' : ''}. What a setting left out takes
          part then, too.
        </p>
        <Button small onClick={() => setOpen(true)}>
          {hasReplaced ? 'See what would be done' : 'See what would be deleted'}
        </Button>
      </div>
      {isOpen ? <DeletesDialog name={folder.name} onClose={() => setOpen(false)} /> : null}
    </div>
  )
}

function DeletesDialog({ name, onClose }: { name: string; onClose: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null)
  const id = useId()
  const [typed, setTyped] = useState('')
  const { data, error, refetch } = useQuery({
    queryKey: [...fileKeys.fileParts, 'held', name],
    queryFn: ({ signal }) => filesApi.heldDeletes(name, signal),
  })
  const allow = useAction({
    run: (count: number) => filesApi.allowDeletes(name, count),
    invalidates: [fileKeys.files, fileKeys.fileParts],
  })
  useEffect(() => {
    dialog.current?.showModal()
  }, [])
  const close = (): void => {
    dialog.current?.close()
    onClose()
  }
  const total = data?.total ?? 0
  const replaced = data?.replaced ?? 0
  const verb = replaced === 0 ? 'Delete' : replaced === total ? 'Replace' : 'Delete and replace'
  const isReady = total > 0 && typed.trim() === String(total)
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault()
    if (isReady && (await allow.start(total))) close()
  }
  return (
    <dialog ref={dialog} class="dialog deletes-dialog" aria-labelledby={id} onCancel={close}>
      <form method="dialog" class="stack" onSubmit={(event) => void submit(event)}>
        <h2 id={id}>
          {verb} {data ? formatPlural(total, 'thing') : '…'}?
        </h2>
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
            {verb} {formatCount(total)}
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
          ...(held.there > 0
            ? [
                `${formatPlural(held.there, 'item')} in OneDrive, to its ${held.replaced > 0 ? 'recycle bin or history' : 'recycle bin'}`,
              ]
            : []),
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
