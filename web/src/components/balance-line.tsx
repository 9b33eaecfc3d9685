/** `listed = stored + gone + skipped + bad`: every listed item must end as one of these. */
import { Fragment } from 'preact'
import { Link } from 'wouter-preact'
import { formatCount } from '../format.ts'

export type BalanceCounts = {
  listed: number
  stored: number
  gone: number
  skipped: number
  bad: number
  /** How many there will be when all are listed, where somebody knows: what the bar is a bar of. */
  whole?: number | null
}

const PARTS = ['stored', 'gone', 'skipped', 'bad'] as const

export type BalanceLineProps = {
  counts: BalanceCounts
  badHref?: string
  /** Without the bar, where a picture stands beside it. */
  plain?: boolean
}

export function BalanceLine({ counts, badHref, plain }: BalanceLineProps) {
  const settled = PARTS.reduce((sum, part) => sum + counts[part], 0)
  const onTheirWay = Math.max(0, counts.listed - settled)
  const open = Math.max(counts.listed, counts.whole ?? 0) - settled
  return (
    <div class="balance">
      {plain ? null : (
        <div class="balance-bar" aria-hidden="true">
          {PARTS.filter((part) => counts[part] > 0).map((part) => (
            <span key={part} class={`balance-${part}`} style={{ flexGrow: counts[part] }} />
          ))}
          {open > 0 ? <span class="balance-open" style={{ flexGrow: open }} /> : null}
        </div>
      )}
      <p class="balance-sum num">
        <Part name="listed" value={counts.listed} />
        {PARTS.map((part, at) => (
          <Fragment key={part}>
            <span class="balance-sign"> {at === 0 ? '=' : '+'} </span>
            <Part
              name={part}
              value={counts[part]}
              href={part === 'bad' && counts.bad > 0 ? badHref : undefined}
            />
          </Fragment>
        ))}
        {onTheirWay > 0 ? (
          <>
            <span class="balance-sign"> + </span>
            <Part name="on their way" value={onTheirWay} />
          </>
        ) : null}
      </p>
    </div>
  )
}

function Part({ name, value, href }: { name: string; value: number; href?: string }) {
  const isEmpty = value === 0 ? ' balance-none' : ''
  const text = (
    <>
      <b>{formatCount(value)}</b> <span>{name}</span>
    </>
  )
  const look = `balance-part balance-is-${name.replaceAll(' ', '-')}${isEmpty}`
  return href ? (
    <Link class={look} href={href}>
      {text}
    </Link>
  ) : (
    <span class={look}>{text}</span>
  )
}
