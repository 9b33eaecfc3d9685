import type { ComponentChildren, VNode } from 'preact'
import { useId } from 'preact/hooks'

export type FieldControl = {
  id: string
  class: 'input'
  'aria-describedby': string | undefined
  'aria-invalid': true | undefined
}

export type FieldProps = {
  label: ComponentChildren
  hint?: ComponentChildren
  error?: string
  children: (control: FieldControl) => VNode
}

/** `<Field label="Account">{(control) => <select {...control} …/>}</Field>` */
export function Field({ label, hint, error, children }: FieldProps) {
  const id = useId()
  const described = [hint ? `${id}-hint` : '', error ? `${id}-error` : ''].filter(Boolean).join(' ')
  return (
    <div class="field">
      <label class="field-label" for={id}>
        {label}
      </label>
      {children({
        id,
        class: 'input',
        'aria-describedby': described || undefined,
        'aria-invalid': error ? true : undefined,
      })}
      {hint ? (
        <p class="field-hint" id={`${id}-hint`}>
          {hint}
        </p>
      ) : null}
      {error ? (
        <p class="field-error" id={`${id}-error`}>
          {error}
        </p>
      ) : null}
    </div>
  )
}

export type Option<T extends string = string> = { value: T; text: string }

type SelectProps<T extends string> = {
  value: T
  options: readonly Option<T>[]
  onChange: (value: T) => void
}

/** A value that is not among the options is shown all the same: an address may name what is no longer there. */
export function Select<T extends string>(
  props: SelectProps<T> & Partial<Omit<FieldControl, 'class'>> & { class?: string; 'aria-label'?: string },
) {
  const { value, options, onChange, ...rest } = props
  const isKnown = options.some((option) => option.value === value)
  return (
    <select
      class="input"
      {...rest}
      value={value}
      onChange={(event) => onChange(event.currentTarget.value as T)}
    >
      {isKnown ? null : <option value={value}>{value}</option>}
      {options.map((option) => (
        <option key={option.value} value={option.value}>
          {option.text}
        </option>
      ))}
    </select>
  )
}

export function SelectField<T extends string>({ label, ...props }: SelectProps<T> & { label: string }) {
  return <Field label={label}>{(control) => <Select {...control} {...props} />}</Field>
}

/** As options: what is called by its own name. */
export const named = (names: readonly string[]): Option[] =>
  names.map((name) => ({ value: name, text: name }))

type RadioProps<T extends string> = {
  legend: string
  name: string
  options: readonly (Option<T> & { hint: string })[]
  value: T
  onChange: (value: T) => void
  children?: ComponentChildren
}

/** A few choices below each other, each with what it means. */
export function RadioField<T extends string>(props: RadioProps<T>) {
  const { legend, name, options, value, onChange, children } = props
  return (
    <fieldset class="radios">
      <legend class="field-label">{legend}</legend>
      {options.map((option) => (
        <label key={option.value} class="radio">
          <input
            type="radio"
            name={name}
            value={option.value}
            checked={option.value === value}
            onChange={() => onChange(option.value)}
          />
          <span>
            <span class="radio-title">{option.text}</span>{' '}
            <span class="radio-hint muted small">{option.hint}</span>
          </span>
        </label>
      ))}
      {children}
    </fieldset>
  )
}

export type SwitchProps = {
  label: ComponentChildren
  checked: boolean
  onChange: (checked: boolean) => void
  disabled?: boolean
}

export function Switch({ label, checked, onChange, disabled }: SwitchProps) {
  return (
    <label class="switch">
      <input
        type="checkbox"
        role="switch"
        aria-checked={checked}
        checked={checked}
        disabled={disabled}
        onChange={(event) => onChange(event.currentTarget.checked)}
      />
      <span>{label}</span>
    </label>
  )
}

export type SegmentedProps<T extends string> = {
  label: string
  options: readonly Option<T>[]
  value: T
  onChange: (value: T) => void
}

/** A few choices side by side; radio buttons underneath, so arrow keys work. */
export function Segmented<T extends string>({ label, options, value, onChange }: SegmentedProps<T>) {
  const name = useId()
  return (
    <fieldset class="segmented">
      <legend class="visually-hidden">{label}</legend>
      {options.map((option) => (
        <label key={option.value}>
          <input
            type="radio"
            name={name}
            value={option.value}
            checked={option.value === value}
            onChange={() => onChange(option.value)}
          />
          <span>{option.text}</span>
        </label>
      ))}
    </fieldset>
  )
}

type TextFieldProps = Omit<FieldProps, 'children'> & {
  rows: number
  value: string
  onChange: (text: string) => void
}

/** Several lines of text. */
export function TextField({ rows, value, onChange, ...field }: TextFieldProps) {
  const onInput = (event: { currentTarget: HTMLTextAreaElement }) => onChange(event.currentTarget.value)
  return (
    <Field {...field}>
      {(control) => <textarea {...control} rows={rows} value={value} onInput={onInput} />}
    </Field>
  )
}
