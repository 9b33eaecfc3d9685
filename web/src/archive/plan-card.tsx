/** What a dry run found, and the button that makes it real. */
import type { ArchivePlan } from '../../../src/server/mail-api/schemas.ts'
import { Badge } from '../components/badge.tsx'
import { Button } from '../components/button.tsx'
import { Card } from '../components/card.tsx'
import { Stat } from '../components/stat.tsx'
import { formatBytes, formatCount, formatPlural } from '../format.ts'
import { ClassTable } from './class-table.tsx'

export type PlanCardProps = {
  plan: ArchivePlan
  /** The form says something else by now. */
  isOld: boolean
  /** Why it cannot be started. */
  missing: string | undefined
  isProving: boolean
  isStarting: boolean
  onProve: () => void
  onStart: () => void
}

export function PlanCard({ plan, isOld, missing, isProving, isStarting, onProve, onStart }: PlanCardProps) {
  const refused = plan.refused.reduce((sum, { messages }) => sum + messages, 0)
  const count = formatPlural(plan.messages, 'message')
  return (
    <Card
      title="What would happen"
      actions={plan.isFull ? <Badge tone="accent">Every message proven</Badge> : <Badge>By the index</Badge>}
    >
      <div class="stack">
        <dl class="stats">
          <Stat
            label="Would be taken out"
            value={formatCount(plan.messages)}
            hint={formatBytes(plan.bytes)}
          />
          <Stat
            label="Space freed in Gmail"
            value={formatBytes(plan.freedBytes)}
            hint={plan.freedBytes === 0 ? freedHint(plan) : 'of your quota'}
          />
          <Stat
            label="Left alone"
            value={formatCount(refused)}
            tone={refused > 0 ? 'warn' : 'neutral'}
            hint={refused > 0 ? 'not safe to take out' : 'nothing refused'}
          />
        </dl>
        <ClassTable
          account={plan.wish.account}
          classes={plan.refused}
          caption="What is left alone, by reason"
        />
        <p class="muted small">
          {plan.isFull
            ? 'Every message was read back from the archive, its hash checked, and Gmail asked.'
            : 'Only the index was looked at. The run itself reads every message back and asks Gmail before it acts; you can have that done now as well.'}
        </p>
        {isOld ? <p class="field-error">The form was changed since. Do another dry run.</p> : null}
        <div class="row">
          <Button
            kind={plan.wish.action === 'delete' ? 'danger' : 'primary'}
            busy={isStarting}
            disabled={isOld || missing !== undefined || plan.messages === 0 || isProving}
            onClick={onStart}
          >
            {START_TEXTS[plan.wish.action]?.(count) ?? `Start with ${count}`}
          </Button>
          {plan.isFull ? null : (
            <Button busy={isProving} disabled={isOld || isStarting} icon="check" onClick={onProve}>
              {isProving ? 'Reading everything back …' : 'Prove every message'}
            </Button>
          )}
        </div>
      </div>
    </Card>
  )
}

const START_TEXTS: Record<string, (count: string) => string> = {
  unlabel: (count) => `Take ${count} out of the inbox`,
  trash: (count) => `Move ${count} to the trash`,
  delete: (count) => `Delete ${count} for good`,
}

const freedHint = ({ wish }: ArchivePlan): string =>
  wish.action === 'unlabel' ? 'it stays under All Mail' : 'nothing to free'
