/** The field, a combobox: what can be typed on, and before anything is typed what was searched for lately and kept. */
import type { RefObject } from 'preact'
import { useId, useState } from 'preact/hooks'
import { Icon } from '../../../../../web/src/components/icon.tsx'
import { useOwnSearches, useSuggestions } from './wish.ts'

const SHOWN_MAX = 8

type Item = { text: string; what: string; isWhole: boolean }

export type FieldProps = {
  field: RefObject<HTMLInputElement>
  text: string
  as: string
  problem: string | undefined
  onType: (text: string) => void
  onSubmit: (text: string) => void
  /** Down, past the list. */
  onLeave: () => void
}

export function FindField({ field, text, as, problem, onType, onSubmit, onLeave }: FieldProps) {
  const id = useId()
  const [isOpen, setOpen] = useState(false)
  const [active, setActive] = useState(-1)
  const items = useItems(text, as, isOpen)
  const isShown = isOpen && items.length > 0
  const close = (): void => {
    setOpen(false)
    setActive(-1)
  }
  const take = (item: Item): void => {
    onSubmit(item.isWhole ? item.text : replaceLast(text, item.text))
    close()
    field.current?.focus()
  }
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.isComposing) return
    const chosen = items[active]
    if (event.key === 'ArrowDown' && isShown && active < items.length - 1) setActive(active + 1)
    else if (event.key === 'ArrowDown') {
      close()
      onLeave()
    } else if (event.key === 'ArrowUp' && isShown) setActive(Math.max(-1, active - 1))
    else if ((event.key === 'Enter' || event.key === 'Tab') && isShown && chosen) take(chosen)
    else if (event.key === 'Enter') {
      onSubmit(text)
      close()
    } else if (event.key === 'Escape' && isShown) close()
    else if (event.key === 'Escape') field.current?.blur()
    else return
    event.preventDefault()
  }
  return (
    <search class="find-query">
      <Icon name="search" />
      <input
        ref={field}
        id={id}
        class="input find-input"
        type="search"
        role="combobox"
        aria-label="Find anything"
        aria-autocomplete="list"
        aria-expanded={isShown}
        aria-controls={`${id}-list`}
        aria-activedescendant={isShown && active >= 0 ? `${id}-${active}` : undefined}
        aria-invalid={problem === undefined ? undefined : true}
        aria-describedby={problem === undefined ? undefined : `${id}-problem`}
        placeholder="What is it about?"
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
        onFocus={() => setOpen(text.trim() === '')}
        onKeyDown={onKeyDown}
        onBlur={close}
      />
      <span class="find-key mono only-wide" aria-hidden="true">
        /
      </span>
      <div
        id={`${id}-list`}
        role="listbox"
        aria-label="Suggestions"
        class="find-suggestions"
        hidden={!isShown}
        // The field keeps the focus.
        onMouseDown={(event) => event.preventDefault()}
      >
        {items.map((item, at) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the keys are the field's, as a combobox has it
          <div
            key={`${item.what} ${item.text}`}
            id={`${id}-${at}`}
            role="option"
            tabIndex={-1}
            aria-selected={at === active}
            class="find-suggestion"
            onClick={() => take(item)}
          >
            <span class="truncate">{item.text}</span>
            <span class="muted small">{item.what}</span>
          </div>
        ))}
      </div>
      {problem === undefined ? null : (
        <p class="field-error" id={`${id}-problem`} role="alert">
          {problem}
        </p>
      )}
    </search>
  )
}

function useItems(text: string, as: string, isOpen: boolean): Item[] {
  const own = useOwnSearches().data
  const suggested = useSuggestions(text, as, isOpen)
  if (text.trim() !== '') {
    return suggested.slice(0, SHOWN_MAX).map(({ text: one, kind }) => ({
      text: one,
      what: kind === 'title' ? 'a title' : '',
      isWhole: kind === 'title',
    }))
  }
  const saved =
    own?.saved.map(({ name, query }) => ({ text: query, what: `kept as ${name}`, isWhole: true })) ?? []
  const recent = own?.recent.map((one) => ({ text: one, what: 'lately', isWhole: true })) ?? []
  return [...saved, ...recent].slice(0, SHOWN_MAX)
}

/** A word that is suggested takes the place of the one that is being typed. */
function replaceLast(text: string, word: string): string {
  return `${text.replace(/\S*$/, '')}${word} `
}
