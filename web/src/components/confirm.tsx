/** Asks before something that cannot be taken back: a native dialog, with focus and Escape by the browser. */
import type { ComponentChildren } from 'preact'
import { useEffect, useId, useRef, useState } from 'preact/hooks'
import { createStore, useStore } from '../store.ts'
import { Button } from './button.tsx'

export type ConfirmOptions = {
  title: string
  text: ComponentChildren
  /** On the button that does it: "Delete 12 messages". */
  action: string
  danger?: boolean
  /** Must be typed to go on. */
  typed?: string
  /** On the button that leaves everything as it is. */
  cancel?: string
}

type Question = ConfirmOptions & { answer: (yes: boolean) => void }

const question = createStore<Question | null>(null)

export function askConfirm(options: ConfirmOptions): Promise<boolean> {
  question.get()?.answer(false)
  return new Promise((resolve) => {
    question.set({ ...options, answer: resolve })
  })
}

export const useConfirm = () => askConfirm

/** Once in the shell. */
export function ConfirmDialog() {
  const asked = useStore(question)
  return asked ? <Dialog key={asked.title} question={asked} /> : null
}

function Dialog({ question: asked }: { question: Question }) {
  const dialog = useRef<HTMLDialogElement>(null)
  const [text, setText] = useState('')
  const id = useId()
  useEffect(() => {
    dialog.current?.showModal()
  }, [])
  const answer = (yes: boolean): void => {
    dialog.current?.close()
    question.set(null)
    asked.answer(yes)
  }
  const isReady = asked.typed === undefined || text.trim() === asked.typed
  return (
    <dialog
      ref={dialog}
      class="dialog"
      aria-labelledby={id}
      aria-describedby={`${id}-text`}
      onCancel={() => answer(false)}
    >
      <form
        method="dialog"
        class="stack"
        onSubmit={(event) => {
          event.preventDefault()
          if (isReady) answer(true)
        }}
      >
        <h2 id={id}>{asked.title}</h2>
        <div class="stack" id={`${id}-text`}>
          {typeof asked.text === 'string' ? <p>{asked.text}</p> : asked.text}
        </div>
        {asked.typed === undefined ? null : (
          <label class="field">
            <span class="field-label">
              Type <code>{asked.typed}</code> to go on
            </span>
            <input
              class="input"
              autocomplete="off"
              spellcheck={false}
              value={text}
              onInput={(event) => setText(event.currentTarget.value)}
            />
          </label>
        )}
        <div class="row row-end">
          <Button onClick={() => answer(false)}>{asked.cancel ?? 'Cancel'}</Button>
          <Button type="submit" kind={asked.danger ? 'danger' : 'primary'} disabled={!isReady}>
            {asked.action}
          </Button>
        </div>
      </form>
    </dialog>
  )
}
