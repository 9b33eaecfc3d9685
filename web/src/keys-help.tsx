/** What keys there are, on `?`; and Ctrl-K, which leads to the search over everything. */
import { useEffect, useId, useRef } from 'preact/hooks'
import { useLocation } from 'wouter-preact'
import { Button } from './components/button.tsx'
import { useKeys } from './keyboard.ts'
import { createStore, useStore } from './store.ts'

const FIND = '/find'

const KEYS: readonly { title: string; keys: readonly (readonly [string, string])[] }[] = [
  {
    title: 'Everywhere',
    keys: [
      ['Ctrl K', 'find anything'],
      ['/', 'search mail'],
      ['?', 'these keys'],
    ],
  },
  {
    title: 'Lists of mail and of what was found',
    keys: [
      ['j', 'the next one'],
      ['k', 'the one before'],
      ['Enter', 'open it'],
    ],
  },
  {
    title: 'Reading',
    keys: [
      ['j k', 'from message to message of a conversation'],
      ['u', 'back to the list; Escape, too'],
    ],
  },
  {
    title: 'The picture of a stream',
    keys: [
      ['← →', 'along it'],
      ['Enter', 'look closer'],
      ['−', 'back out; Escape shows all'],
    ],
  },
]

const isShown = createStore(false)
export const showKeys = (): void => isShown.set(true)

/** Once in the shell. */
export function KeysHelp() {
  const [path, navigate] = useLocation()
  useKeys({ '?': showKeys })
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      const isFind = event.key.toLowerCase() === 'k' && (event.ctrlKey || event.metaKey)
      if (!isFind || event.shiftKey || event.altKey || document.querySelector('dialog[open]')) return
      // Otherwise the browser's own search.
      event.preventDefault()
      if (path !== FIND) navigate(FIND)
      else
        document
          .querySelector<HTMLInputElement>('.main input[type="search"], .main [role="combobox"]')
          ?.focus()
    }
    addEventListener('keydown', onKey)
    return () => removeEventListener('keydown', onKey)
  }, [path, navigate])
  return useStore(isShown) ? <KeysDialog /> : null
}

function KeysDialog() {
  const dialog = useRef<HTMLDialogElement>(null)
  const id = useId()
  useEffect(() => dialog.current?.showModal(), [])
  const close = (): void => isShown.set(false)
  return (
    <dialog ref={dialog} class="dialog keys-help" aria-labelledby={id} onClose={close}>
      <div class="stack">
        <h2 id={id}>Keys</h2>
        {KEYS.map(({ title, keys }) => (
          <section key={title}>
            <h3 class="keys-title">{title}</h3>
            <dl class="keys-list">
              {keys.map(([key, what]) => (
                <div key={key}>
                  <dt>
                    {key.split(' ').map((one) => (
                      <kbd key={one}>{one}</kbd>
                    ))}
                  </dt>
                  <dd>{what}</dd>
                </div>
              ))}
            </dl>
          </section>
        ))}
        <div class="row row-end">
          <Button kind="primary" onClick={() => dialog.current?.close()}>
            Close
          </Button>
        </div>
      </div>
    </dialog>
  )
}
