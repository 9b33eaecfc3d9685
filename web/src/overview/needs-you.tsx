import type { Overview } from '../../../src/app/schemas.ts'
import { appPages } from '../../../src/apps/pages.ts'
import type { Accounts } from '../api.ts'
import { api } from '../api.ts'
import { Button, ButtonLink } from '../components/button.tsx'
import { Card } from '../components/card.tsx'
import { Icon } from '../components/icon.tsx'
import { Skeleton } from '../components/notes.tsx'
import { Time } from '../components/values.tsx'
import { formatPlural } from '../format.ts'
import { keys, useAccounts, useAction } from '../queries.ts'
import { type Need, needsOf, type SourceAccount } from './need.ts'

/** A page of alerts helps nobody: the rest is counted. */
const NEEDS_MAX = 6

/** Those that are the sources of an app by themselves. */
function sourcesOf({ items, services }: Accounts): SourceAccount[] {
  return items.flatMap(({ service, name, state, apps }) => {
    const company = services.find((one) => one.name === service)?.company ?? 'The service'
    return appPages.flatMap((app) => {
      const stream = app.name in apps ? app.stream?.ofAccount?.(name) : undefined
      return stream === undefined ? [] : [{ name, state, stream, company }]
    })
  })
}

export function NeedsYou({ overview }: { overview: Overview | undefined }) {
  const { data: accounts } = useAccounts()
  // Always the same ones in the same order, as hooks must be.
  const ofApps = appPages.flatMap(({ useNeeds }) => useNeeds?.() ?? [])
  if (!overview) {
    return (
      <Card title="Needs you">
        <Skeleton lines={2} />
      </Card>
    )
  }
  const needs = needsOf(overview, accounts ? sourcesOf(accounts) : [], ofApps)
  if (needs.length === 0) {
    return (
      <Card title="Needs you">
        <p class="calm">
          <Icon name="check" /> Nothing. All goes by itself.
        </p>
      </Card>
    )
  }
  return (
    <Card title="Needs you" tone={needs[0]!.tone}>
      <ul class="needs-list">
        {needs.slice(0, NEEDS_MAX).map((need) => (
          <li key={need.key}>
            <NeedNote need={need} />
          </li>
        ))}
        {needs.length > NEEDS_MAX ? (
          <li class="muted">and {formatPlural(needs.length - NEEDS_MAX, 'thing')} more</li>
        ) : null}
      </ul>
    </Card>
  )
}

function NeedNote({ need }: { need: Need }) {
  const resume = useAction({ run: api.resume, invalidates: [keys.accounts] })
  const { resume: paused, action } = need
  return (
    <div class={`need tone-${need.tone}`}>
      <Icon name={paused ? 'pause' : 'alert'} />
      <div class="need-body">
        <div>
          <h3 class="need-title">{need.title}</h3>
          <p class="need-text">{need.text}</p>
          {need.since === null ? null : (
            <p class="muted small">
              <Time at={need.since} />
            </p>
          )}
        </div>
        {action ? (
          <ButtonLink href={action.href} small>
            {action.text}
          </ButtonLink>
        ) : null}
        {paused ? (
          <Button
            small
            icon="play"
            busy={resume.busy}
            onClick={() => void resume.start({ scope: paused.scope, target: paused.target || undefined })}
          >
            Resume
          </Button>
        ) : null}
      </div>
    </div>
  )
}
