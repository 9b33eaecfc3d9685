/** What a dry run found, and the button that makes it real. */

import { Link } from 'wouter-preact'
import { Badge } from '../../../../../web/src/components/badge.tsx'
import { Button } from '../../../../../web/src/components/button.tsx'
import { Card } from '../../../../../web/src/components/card.tsx'
import { ProgressBar } from '../../../../../web/src/components/progress-bar.tsx'
import { Stat } from '../../../../../web/src/components/stat.tsx'
import { Bytes, Count } from '../../../../../web/src/components/values.tsx'
import { formatBytes, formatCount, formatPlural } from '../../../../../web/src/format.ts'
import type { CleanUpPlan, CleanUpProof } from '../../api/schemas.ts'
import { messageLink } from '../links.ts'
import { startKind } from './clean-up.ts'

export type PlanCardProps = {
  plan: CleanUpPlan
  /** The form says something else by now. */
  isOld: boolean
  /** Why it cannot be started. */
  missing: string | undefined
  /** As many as were looked at so far; undefined where it is not being proven. */
  proof: Pick<CleanUpProof, 'looked' | 'trouble'> | undefined
  isStarting: boolean
  onProve: () => void
  onStart: () => void
}

export function PlanCard({ plan, isOld, missing, proof, isStarting, onProve, onStart }: PlanCardProps) {
  const isProving = proof !== undefined
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
        {plan.understood === '' ? null : (
          <p>
            Only mail that this finds: <code>{plan.understood}</code>
          </p>
        )}
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
        {proof ? <ProofProgress proof={proof} total={plan.messages} /> : null}
        <div class="row">
          {plan.isFull ? null : (
            <Button
              kind="primary"
              busy={isProving}
              disabled={isOld || isStarting}
              icon="check"
              onClick={onProve}
            >
              {isProving ? 'Reading everything back …' : 'Prove every message'}
            </Button>
          )}
          <Button
            kind={startKind(plan)}
            busy={isStarting}
            disabled={isOld || missing !== undefined || plan.messages === 0 || isProving}
            onClick={onStart}
          >
            {START_TEXTS[plan.wish.action]?.(count) ?? `Start with ${count}`}
          </Button>
        </div>
      </div>
    </Card>
  )
}

function ProofProgress({ proof, total }: { proof: NonNullable<PlanCardProps['proof']>; total: number }) {
  return (
    <div class="run-progress">
      <ProgressBar done={proof.looked} total={proof.looked > 0 ? total : null} label="Proof" />
      <p class="small num">
        <b>{formatCount(proof.looked)}</b> of {formatPlural(total, 'message')} read back. You may leave this
        page: it goes on, and the same button shows it again.
      </p>
      {proof.trouble === null ? null : <p class="small">{proof.trouble}</p>}
    </div>
  )
}

const START_TEXTS: Record<string, (count: string) => string> = {
  unlabel: (count) => `Take ${count} out of the inbox`,
  trash: (count) => `Move ${count} to the trash`,
  delete: (count) => `Delete ${count} for good`,
}

const freedHint = ({ wish }: CleanUpPlan): string =>
  wish.action === 'unlabel' ? 'it stays under All Mail' : 'nothing to free'

/** Here the archive itself is at fault. */
const DAMAGE = new Set(['mismatch', 'unreadable'])

export function ClassTable(props: { account: string; classes: CleanUpPlan['refused']; caption: string }) {
  if (props.classes.length === 0) return null
  return (
    <table class="class-table">
      <caption class="visually-hidden">{props.caption}</caption>
      <thead>
        <tr>
          <th scope="col">Left alone because</th>
          <th scope="col" class="cell-end">
            Messages
          </th>
          <th scope="col" class="cell-end">
            Size
          </th>
        </tr>
      </thead>
      <tbody>
        {props.classes.map((row) => (
          <tr key={row.class} class={DAMAGE.has(row.class) ? 'is-damage' : undefined}>
            <th scope="row">
              {row.text}
              {row.example === null ? null : (
                <>
                  {' '}
                  <Link href={messageLink(props.account, row.example)} aria-label={`An example: ${row.text}`}>
                    example
                  </Link>
                </>
              )}
            </th>
            <td class="cell-end">
              <Count value={row.messages} />
            </td>
            <td class="cell-end">
              <Bytes value={row.bytes} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}
