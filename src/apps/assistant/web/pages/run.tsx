/** One run of an agent, step by step: what it asked for, whether that was allowed, and what came back. */
import { Link, useParams } from 'wouter-preact'
import { Badge } from '../../../../../web/src/components/badge.tsx'
import { Card } from '../../../../../web/src/components/card.tsx'
import { Loaded, Skeleton } from '../../../../../web/src/components/notes.tsx'
import { PageTitle } from '../../../../../web/src/components/page-title.tsx'
import { Time } from '../../../../../web/src/components/values.tsx'
import { pathPart } from '../../../../../web/src/links.ts'
import type { StepView } from '../../api/schemas.ts'
import { RUN_STATES } from '../agents.tsx'
import { assistLink, threadLink, useRun } from '../queries.ts'
import '../styles/assist.css'

export function RunPage() {
  const id = pathPart(useParams<{ id: string }>().id)
  const run = useRun(id)
  return (
    <>
      <PageTitle
        title={`Run ${id}`}
        crumbs={[
          { text: 'Assistant', href: assistLink() },
          { text: 'Agents', href: assistLink({ show: 'agents' }) },
        ]}
      />
      <Loaded query={run} waiting={<Skeleton height="16rem" />}>
        {(one) => (
          <div class="stack">
            <Card
              title={`${one.profile} for ${one.account}`}
              actions={
                <Badge tone={RUN_STATES[one.status].tone} dot>
                  {RUN_STATES[one.status].text}
                </Badge>
              }
            >
              <p class="muted small">
                Begun <Time at={one.startedAtMs} /> by the rule {one.rule || '(none)'} ·{' '}
                <Link href={threadLink(one)}>Its conversation</Link>
              </p>
              <p class="assist-text">{one.text}</p>
            </Card>
            <Card title="Steps">
              <ol class="assist-events">
                {one.steps.map((step) => (
                  <Step key={step.number} step={step} />
                ))}
              </ol>
            </Card>
          </div>
        )}
      </Loaded>
    </>
  )
}

const OUTCOMES = {
  begun: { text: 'Begun', tone: 'accent' },
  done: { text: 'Done', tone: 'accent' },
  refused: { text: 'Refused', tone: 'danger' },
  failed: { text: 'Failed', tone: 'warn' },
  said: { text: 'Said', tone: 'neutral' },
} as const

function Step({ step }: { step: StepView }) {
  const outcome = OUTCOMES[step.outcome]
  return (
    <li>
      <div class="row">
        <span class="mono">{step.tool ?? 'answer'}</span>
        <Badge tone={outcome.tone}>{outcome.text}</Badge>
        <span class="muted small">
          <Time at={step.atMs} />
        </span>
      </div>
      {step.arguments === '' ? null : <pre class="assist-pre mono">{step.arguments}</pre>}
      {step.result === '' ? null : <pre class="assist-pre mono">{step.result}</pre>}
    </li>
  )
}
