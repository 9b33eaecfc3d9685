/** Runs of agents, and where a mail would go. */
import { useState } from 'preact/hooks'
import { Link } from 'wouter-preact'
import { Badge } from '../../../../web/src/components/badge.tsx'
import { Button } from '../../../../web/src/components/button.tsx'
import { Card } from '../../../../web/src/components/card.tsx'
import { Field, named, SelectField, TextField } from '../../../../web/src/components/form.tsx'
import { EmptyNote, Loaded, Skeleton } from '../../../../web/src/components/notes.tsx'
import { Time } from '../../../../web/src/components/values.tsx'
import type { RoutedView } from '../api/schemas.ts'
import { useFailing } from './failing.ts'
import { assistApi, runLink, useRuns } from './queries.ts'

export const RUN_STATES = {
  running: { text: 'Running', tone: 'accent' },
  completed: { text: 'Completed', tone: 'accent' },
  max_iterations: { text: 'Too many steps', tone: 'warn' },
  error: { text: 'Failed', tone: 'danger' },
} as const

export function Agents({ accounts }: { accounts: readonly string[] }) {
  const runs = useRuns()
  return (
    <>
      <RouteTester accounts={accounts} />
      <Card title="Runs">
        <Loaded query={runs} waiting={<Skeleton lines={4} />}>
          {({ items }) =>
            items.length === 0 ? (
              <EmptyNote title="No agent has run">
                Routing rules say which mail goes to an agent; without one, all mail is sorted.
              </EmptyNote>
            ) : (
              <ul class="assist-events">
                {items.map((run) => (
                  <li key={run.id}>
                    <div class="row">
                      <Link href={runLink(run)}>
                        {run.profile} #{run.id}
                      </Link>
                      <Badge tone={RUN_STATES[run.status].tone}>{RUN_STATES[run.status].text}</Badge>
                      <span class="muted small">
                        <Time at={run.startedAtMs} />
                      </span>
                    </div>
                    <p class="small assist-text">{run.text}</p>
                  </li>
                ))}
              </ul>
            )
          }
        </Loaded>
      </Card>
    </>
  )
}

function RouteTester({ accounts }: { accounts: readonly string[] }) {
  const [account, setAccount] = useState(accounts[0] ?? '')
  const [mail, setMail] = useState({ from: '', subject: '', headers: '' })
  const [routed, setRouted] = useState<RoutedView | undefined>()
  const ask = useFailing(async () => setRouted(await assistApi.routeTest(account, mail)))
  return (
    <Card title="Where would a mail go?">
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault()
          void ask.start()
        }}
      >
        {accounts.length < 2 ? null : (
          <SelectField label="Account" value={account} options={named(accounts)} onChange={setAccount} />
        )}
        <Field label="From">
          {(control) => (
            <input
              {...control}
              value={mail.from}
              placeholder="shop@example.com"
              onInput={(event) => setMail({ ...mail, from: event.currentTarget.value })}
            />
          )}
        </Field>
        <Field label="Subject">
          {(control) => (
            <input
              {...control}
              value={mail.subject}
              onInput={(event) => setMail({ ...mail, subject: event.currentTarget.value })}
            />
          )}
        </Field>
        <TextField
          label="Further headers"
          hint="One in each line, such as X-Ticket: 7 or X-Original-From: bob@example.com"
          rows={2}
          value={mail.headers}
          onChange={(headers) => setMail({ ...mail, headers })}
        />
        <div class="row">
          <Button type="submit" busy={ask.busy} disabled={mail.from === ''}>
            Try
          </Button>
        </div>
        {routed === undefined ? null : (
          <div role="status">
            <p>
              {routed.route === 'pipeline'
                ? 'It is sorted like all mail.'
                : `It goes to the agent ${routed.profile}, by the rule ${routed.rule}.`}
            </p>
            <ul class="assist-sources muted small">
              {routed.why.map((text) => (
                <li key={text}>{text}</li>
              ))}
            </ul>
          </div>
        )}
      </form>
    </Card>
  )
}
