/** The field of the query, with suggestions below it: a combobox, as screen readers know it. */
import type { RefObject } from 'preact'
import { useId, useState } from 'preact/hooks'
import { Icon } from '../../../../../web/src/components/icon.tsx'
import { Detail } from '../../../../../web/src/components/notes.tsx'
import { useSuggestions } from './use-search.ts'
import { applySuggestion, isUnfinished } from './words.ts'

const SUGGESTIONS_MAX = 7

export type QueryProblem = { text: string; hint: string | undefined }

export type QueryFieldProps = {
  field: RefObject<HTMLInputElement>
  text: string
  problem: QueryProblem | undefined
  onType: (text: string) => void
  onSubmit: (text: string) => void
  /** Down, past the suggestions. */
  onLeave: () => void
}

export function QueryField({ field, text, problem, onType, onSubmit, onLeave }: QueryFieldProps) {
  const [isOpen, setOpen] = useState(false)
  const [active, setActive] = useState(-1)
  const id = useId()
  const items = useSuggestions(text, isOpen).slice(0, SUGGESTIONS_MAX)
  const isShown = isOpen && items.length > 0
  const close = (): void => {
    setOpen(false)
    setActive(-1)
  }
  const take = (suggestion: string): void => {
    const next = applySuggestion(text, suggestion)
    // An operator wants its value: more suggestions follow.
    const isOpenEnded = isUnfinished(next)
    if (isOpenEnded) onType(next)
    else onSubmit(next)
    setActive(-1)
    setOpen(isOpenEnded)
    field.current?.focus()
  }
  const onKeyDown = (event: KeyboardEvent): void => {
    const handle = keyAction(event, { isShown, active, last: items.length - 1 })
    if (handle === undefined) return
    event.preventDefault()
    if (typeof handle === 'number') setActive(handle)
    else if (handle === 'take') take(items[active]!.text)
    else if (handle === 'submit') onSubmit(text)
    if (handle === 'submit' || handle === 'close' || handle === 'leave') close()
    if (handle === 'leave') onLeave()
    if (handle === 'blur') field.current?.blur()
  }
  return (
    <search class="query">
      <Icon name="search" />
      <input
        ref={field}
        id={id}
        class="input query-input"
        type="search"
        role="combobox"
        aria-label="Search mail"
        aria-autocomplete="list"
        aria-expanded={isShown}
        aria-controls={`${id}-list`}
        aria-activedescendant={isShown && active >= 0 ? `${id}-${active}` : undefined}
        aria-invalid={problem ? true : undefined}
        aria-describedby={problem ? `${id}-problem` : undefined}
        placeholder="Words, or from:ann has:attachment"
        autocomplete="off"
        autocapitalize="off"
        spellcheck={false}
        enterKeyHint="search"
        maxLength={2_000}
        value={text}
        onInput={(event) => {
          setOpen(true)
          setActive(-1)
          onType(event.currentTarget.value)
        }}
        onKeyDown={onKeyDown}
        onBlur={close}
      />
      <span class="query-key mono only-wide" aria-hidden="true">
        /
      </span>
      <div
        id={`${id}-list`}
        role="listbox"
        aria-label="Suggestions"
        class="suggestions"
        hidden={!isShown}
        // The field keeps the focus.
        onMouseDown={(event) => event.preventDefault()}
      >
        {items.map((item, at) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the keys are the field's, as a combobox has it
          <div
            key={item.text}
            id={`${id}-${at}`}
            role="option"
            tabIndex={-1}
            aria-selected={at === active}
            class="suggestion"
            onClick={() => take(item.text)}
          >
            <span class="suggestion-text truncate">{item.text}</span>
            <span class="muted small truncate">{item.what}</span>
          </div>
        ))}
      </div>
      {problem ? (
        <div class="field-error query-problem" id={`${id}-problem`} role="alert">
          <Detail text={problem.text} />
          {problem.hint ? <p class="muted">{problem.hint}</p> : null}
        </div>
      ) : null}
    </search>
  )
}

type FieldAction = number | 'take' | 'submit' | 'close' | 'leave' | 'blur' | undefined

function keyAction(
  { key, isComposing }: KeyboardEvent,
  { isShown, active, last }: { isShown: boolean; active: number; last: number },
): FieldAction {
  if (isComposing) return undefined
  if (key === 'ArrowDown') return isShown && active < last ? active + 1 : 'leave'
  if (key === 'ArrowUp' && isShown) return Math.max(-1, active - 1)
  if (key === 'Enter') return isShown && active >= 0 ? 'take' : 'submit'
  if (key === 'Tab' && isShown && active >= 0) return 'take'
  if (key === 'Escape') return isShown ? 'close' : 'blur'
  return undefined
}
