import type { ComponentChildren } from 'preact'
import { useId } from 'preact/hooks'
import { Link } from 'wouter-preact'
import type { Tone } from './tone.ts'

export type CardProps = {
  title?: ComponentChildren
  /** Of the heading. */
  level?: 2 | 3 | 4
  /** Makes the title a link. */
  href?: string
  actions?: ComponentChildren
  tone?: Tone
  class?: string
  children?: ComponentChildren
}

export function Card({
  title,
  level = 2,
  href,
  actions,
  tone = 'neutral',
  class: extra,
  children,
}: CardProps) {
  const id = useId()
  const Heading = `h${level}` as 'h2'
  const isHeaded = title !== undefined
  return (
    <section class={`card tone-${tone} ${extra ?? ''}`} aria-labelledby={isHeaded ? id : undefined}>
      {isHeaded || actions ? (
        <div class="card-head">
          {isHeaded ? (
            <Heading class="card-title" id={id}>
              {href ? <Link href={href}>{title}</Link> : title}
            </Heading>
          ) : null}
          {actions ? <div class="card-actions">{actions}</div> : null}
        </div>
      ) : null}
      {children}
    </section>
  )
}
