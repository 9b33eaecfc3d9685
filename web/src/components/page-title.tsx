import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { Link } from 'wouter-preact'

export type PageTitleProps = {
  title: string
  lead?: ComponentChildren
  crumbs?: readonly { text: string; href: string }[]
  children?: ComponentChildren
}

/** Set after the first page was shown: then the heading takes the focus, so that screen readers read the new page. */
let isNavigated = false

export function PageTitle({ title, lead, crumbs, children }: PageTitleProps) {
  const heading = useRef<HTMLHeadingElement>(null)
  useEffect(() => {
    document.title = `${title} · Tidemark`
  }, [title])
  useEffect(() => {
    if (isNavigated) heading.current?.focus({ preventScroll: true })
    isNavigated = true
  }, [])
  return (
    <div class="page-title">
      <div class="page-title-text">
        {crumbs && crumbs.length > 0 ? (
          <nav aria-label="Where this page is" class="crumbs">
            {crumbs.map(({ text, href }) => (
              <Link key={href} href={href}>
                {text}
              </Link>
            ))}
          </nav>
        ) : null}
        <h1 ref={heading} tabIndex={-1}>
          {title}
        </h1>
        {lead ? <div class="lead">{lead}</div> : null}
      </div>
      {children ? <div class="row">{children}</div> : null}
    </div>
  )
}
