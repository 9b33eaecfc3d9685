/** The user's own rules, and those that corrections made: each can be tried over past mail before it counts. */
import { useState } from 'preact/hooks'
import { Link } from 'wouter-preact'
import { Badge } from '../../../../web/src/components/badge.tsx'
import { Button } from '../../../../web/src/components/button.tsx'
import { Card } from '../../../../web/src/components/card.tsx'
import { Field, named, SelectField, Switch } from '../../../../web/src/components/form.tsx'
import { EmptyNote, Loaded, Skeleton } from '../../../../web/src/components/notes.tsx'
import { formatCount, formatPlural } from '../../../../web/src/format.ts'
import { useAction } from '../../../../web/src/queries.ts'
import type { CategoryView, ExampleView, ReplayedView, RuleView } from '../api/schemas.ts'
import { useFailing } from './failing.ts'
import { assistApi, assistKeys, threadLink, useExamples, useRules } from './queries.ts'
import { CATEGORIES, CATEGORY_TEXTS } from './words.ts'

const CHOICES = CATEGORIES.map((value) => ({ value, text: CATEGORY_TEXTS[value] }))

export function Rules({ accounts }: { accounts: readonly string[] }) {
  const rules = useRules()
  return (
    <>
      <NewRule accounts={accounts} />
      <Loaded query={rules} waiting={<Skeleton lines={4} />}>
        {({ items }) =>
          items.length === 0 ? (
            <EmptyNote title="There is no rule yet">
              Move a mail to another category: a rule is proposed, switched off until you switch it on.
            </EmptyNote>
          ) : (
            <ul class="assist-events">
              {items.map((rule) => (
                <Rule key={rule.id} rule={rule} />
              ))}
            </ul>
          )
        }
      </Loaded>
      <Examples />
    </>
  )
}

/** What the model is shown, and the classifier learns from. */
function Examples() {
  const examples = useExamples()
  return (
    <Card title="What it learns from">
      <Loaded query={examples} waiting={<Skeleton lines={2} />}>
        {({ items }) =>
          items.length === 0 ? (
            <p class="muted">Nothing yet: a mail that you move to another category is remembered here.</p>
          ) : (
            <ul class="assist-events">
              {items.map((one) => (
                <OneExample key={one.id} example={one} />
              ))}
            </ul>
          )
        }
      </Loaded>
    </Card>
  )
}

function OneExample({ example }: { example: ExampleView }) {
  const { id, isOn, text, category } = example
  const change = useAction<boolean>({
    run: (on) => assistApi.changeExample(id, { isOn: on }),
    invalidates: [assistKeys.examples],
  })
  const remove = useAction({ run: () => assistApi.removeExample(id), invalidates: [assistKeys.examples] })
  const [from = '', subject = ''] = text.split('\n')
  return (
    <li>
      <div class="row">
        <span class="assist-text">
          <Link href={threadLink(example)}>{subject || '(no subject)'}</Link>{' '}
          {from === '' ? '' : `of ${from} `}
          is <b>{CATEGORY_TEXTS[category]}</b>
        </span>
        <Switch
          label={isOn ? 'Learned from' : 'Not learned from'}
          checked={isOn}
          disabled={change.busy}
          onChange={(on) => void change.start(on)}
        />
        <Button small kind="quiet" icon="close" busy={remove.busy} onClick={() => void remove.start()}>
          Forget
        </Button>
      </div>
    </li>
  )
}

function NewRule({ accounts }: { accounts: readonly string[] }) {
  const [account, setAccount] = useState(accounts[0] ?? '')
  const [from, setFrom] = useState('')
  const [subject, setSubject] = useState('')
  const [category, setCategory] = useState<CategoryView>('fyi')
  const add = useAction({
    run: () =>
      assistApi.addRule({ account, from: from.trim() || null, subject: subject.trim() || null, category }),
    invalidates: [assistKeys.rules],
    done: () => {
      setFrom('')
      setSubject('')
    },
  })
  return (
    <Card title="A new rule">
      <form
        class="row assist-change"
        onSubmit={(event) => {
          event.preventDefault()
          void add.start()
        }}
      >
        {accounts.length < 2 ? null : (
          <SelectField label="Account" value={account} options={named(accounts)} onChange={setAccount} />
        )}
        <Field label="The sender is" hint="such as *@example.com">
          {(control) => (
            <input {...control} value={from} onInput={(event) => setFrom(event.currentTarget.value)} />
          )}
        </Field>
        <Field label="The subject has">
          {(control) => (
            <input {...control} value={subject} onInput={(event) => setSubject(event.currentTarget.value)} />
          )}
        </Field>
        <SelectField label="Goes to" value={category} options={CHOICES} onChange={setCategory} />
        <Button type="submit" busy={add.busy} disabled={from.trim() === '' && subject.trim() === ''}>
          Add, switched off
        </Button>
      </form>
    </Card>
  )
}

function ruleText({ from, subject }: RuleView): string {
  const parts = [
    ...(from === null ? [] : [`from ${from}`]),
    ...(subject === null ? [] : [`with "${subject}" in the subject`]),
  ]
  return `Mail ${parts.join(' and ')}`
}

function Rule({ rule }: { rule: RuleView }) {
  const [replayed, setReplayed] = useState<ReplayedView | undefined>()
  const [isEdited, setEdited] = useState(false)
  const change = useAction<boolean>({
    run: (isOn) => assistApi.changeRule(rule.id, { isOn }),
    invalidates: [assistKeys.rules],
  })
  const remove = useAction({ run: () => assistApi.removeRule(rule.id), invalidates: [assistKeys.rules] })
  const replay = useFailing(async () => setReplayed(await assistApi.replay(rule.id)))
  return (
    <li>
      <div class="row">
        <span class="assist-text">
          {ruleText(rule)}: <b>{CATEGORY_TEXTS[rule.category]}</b>
        </span>
        {rule.origin === 'correction' ? <Badge>from what you moved</Badge> : null}
        <span class="muted small">decided {formatPlural(rule.hits, 'mail', 'mails')}</span>
        <Switch
          label={rule.isOn ? 'On' : 'Off'}
          checked={rule.isOn}
          disabled={change.busy}
          onChange={(isOn) => void change.start(isOn)}
        />
        <Button small icon="play" busy={replay.busy} onClick={() => void replay.start()}>
          Try over past mail
        </Button>
        <Button small onClick={() => setEdited(!isEdited)}>
          Change
        </Button>
        <Button small kind="quiet" icon="close" busy={remove.busy} onClick={() => void remove.start()}>
          Remove
        </Button>
      </div>
      {isEdited ? <EditRule rule={rule} end={() => setEdited(false)} /> : null}
      {replayed === undefined ? null : <Replayed replayed={replayed} />}
    </li>
  )
}

function EditRule({ rule, end }: { rule: RuleView; end: () => void }) {
  const [from, setFrom] = useState(rule.from ?? '')
  const [subject, setSubject] = useState(rule.subject ?? '')
  const [category, setCategory] = useState<CategoryView>(rule.category)
  const save = useAction({
    run: () =>
      assistApi.changeRule(rule.id, { from: from.trim() || null, subject: subject.trim() || null, category }),
    invalidates: [assistKeys.rules],
    done: end,
  })
  return (
    <form
      class="row assist-change"
      onSubmit={(event) => {
        event.preventDefault()
        void save.start()
      }}
    >
      <Field label="The sender is now">
        {(control) => (
          <input {...control} value={from} onInput={(event) => setFrom(event.currentTarget.value)} />
        )}
      </Field>
      <Field label="The subject has now">
        {(control) => (
          <input {...control} value={subject} onInput={(event) => setSubject(event.currentTarget.value)} />
        )}
      </Field>
      <SelectField label="Goes now to" value={category} options={CHOICES} onChange={setCategory} />
      <Button type="submit" busy={save.busy} disabled={from.trim() === '' && subject.trim() === ''}>
        Save the rule
      </Button>
    </form>
  )
}

function Replayed({ replayed: { looked, fits, changes, shown, archive } }: { replayed: ReplayedView }) {
  return (
    <div role="status" class="small">
      <p>
        Of {formatCount(looked)} sorted threads it fits {formatCount(fits)}, and would sort{' '}
        {formatCount(changes)} of them otherwise.
        {archive === null ? '' : ` In the archive it fits ${formatPlural(archive, 'mail')} more.`} Nothing was
        changed.
      </p>
      <ul class="assist-sources">
        {shown.map((one) => (
          <li key={one.thread} class="assist-text">
            {one.subject || '(no subject)'}: {one.was === null ? 'not sorted' : CATEGORY_TEXTS[one.was]} →{' '}
            {CATEGORY_TEXTS[one.becomes]}
          </li>
        ))}
      </ul>
    </div>
  )
}
