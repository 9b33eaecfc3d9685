import type { ButtonHTMLAttributes, ComponentChildren } from 'preact'
import { Link } from 'wouter-preact'
import { Icon, type IconName } from './icon.tsx'

type Look = { kind?: 'plain' | 'primary' | 'quiet' | 'danger'; small?: boolean; icon?: IconName }

export type ButtonProps = Look & { busy?: boolean } & Omit<ButtonHTMLAttributes<HTMLButtonElement>, 'icon'>

export function Button({ kind, small, icon, busy, disabled, class: extra, children, ...rest }: ButtonProps) {
  return (
    <button
      type="button"
      {...rest}
      class={`${lookOf({ kind, small })} ${String(extra ?? '')}`}
      disabled={disabled || busy}
      aria-busy={busy || undefined}
    >
      {icon ? <Icon name={icon} /> : null}
      {children}
    </button>
  )
}

export function ButtonLink(
  props: Look & { href: string; children: ComponentChildren; class?: string; 'aria-label'?: string },
) {
  const { kind, small, icon, href, children, class: extra, ...rest } = props
  return (
    <Link {...rest} href={href} class={`${lookOf({ kind, small })} ${extra ?? ''}`}>
      {icon ? <Icon name={icon} /> : null}
      {children}
    </Link>
  )
}

function lookOf({ kind = 'plain', small }: Look): string {
  return `button button-${kind}${small ? ' button-small' : ''}`
}
