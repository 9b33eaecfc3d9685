/** The controls above the job list; each writes into the address, which the list follows. */
import { useEffect, useId, useState } from 'preact/hooks'
import { Button } from '../components/button.tsx'
import { Field, type Option, SelectField } from '../components/form.tsx'
import { useOverview } from '../queries.ts'
import { setSearchParams } from '../search-params.ts'
import { titleAmong } from '../stream-name.ts'
import { AGE_OPTIONS, type FilterParams, PARAM_NAMES, STATE_OPTIONS } from './job-filter.ts'

/** After the last key: every letter of a kind would ask the server otherwise. */
const TYPING_MS = 300

export function JobFilters({ params, kinds }: { params: FilterParams; kinds: readonly string[] }) {
  const isFiltered = PARAM_NAMES.some((name) => params[name] !== '')
  return (
    <search class="job-filters">
      <Choice name="state" label="State" value={params.state} options={STATE_OPTIONS} />
      <KindField key={`kind ${params.kind === '' ? 'none' : 'some'}`} value={params.kind} kinds={kinds} />
      <StreamChoice value={params.stream} />
      <Choice name="age" label="Age" value={params.age} options={AGE_OPTIONS} />
      <NumberChip name="parent" text="Came from job" value={params.parent} />
      <NumberChip name="segment" text="Of slice" value={params.segment} />
      {isFiltered ? (
        <Button
          kind="quiet"
          onClick={() => setSearchParams(Object.fromEntries(PARAM_NAMES.map((name) => [name, undefined])))}
        >
          Clear
        </Button>
      ) : null}
    </search>
  )
}

type ChoiceProps = { name: keyof FilterParams; label: string; value: string; options: readonly Option[] }

function Choice({ name, ...props }: ChoiceProps) {
  return <SelectField {...props} onChange={(value) => setSearchParams({ [name]: value }, { push: true })} />
}

function StreamChoice({ value }: { value: string }) {
  const names = useOverview().data?.streams.map(({ name }) => name) ?? []
  const options = [
    { value: '', text: 'Any stream' },
    ...names.map((name) => ({ value: name, text: titleAmong(name, names) })),
  ]
  return <Choice name="stream" label="Stream" value={value} options={options} />
}

function KindField({ value, kinds }: { value: string; kinds: readonly string[] }) {
  const id = useId()
  const [text, setText] = useState(value)
  useEffect(() => {
    if (text.trim() === value) return
    const timer = setTimeout(() => setSearchParams({ kind: text.trim() }), TYPING_MS)
    return () => clearTimeout(timer)
  }, [text])
  return (
    <Field label="Kind">
      {(control) => (
        <>
          <input
            {...control}
            list={id}
            placeholder="Any kind"
            autocomplete="off"
            spellcheck={false}
            value={text}
            onInput={(event) => setText(event.currentTarget.value)}
          />
          <datalist id={id}>
            {kinds.map((kind) => (
              <option key={kind} value={kind} />
            ))}
          </datalist>
        </>
      )}
    </Field>
  )
}

function NumberChip({ name, text, value }: { name: 'parent' | 'segment'; text: string; value: string }) {
  if (value === '') return null
  return (
    <Button
      icon="close"
      aria-label={`${text} ${value}: take away`}
      onClick={() => setSearchParams({ [name]: '' })}
    >
      {text} #{value}
    </Button>
  )
}
