/** What a page shows instead of its content: what happened or why there is nothing, and what to do. */
import type { ComponentChildren } from 'preact'
import { ApiError } from '../problem.ts'
import { Button } from './button.tsx'
import { Icon, type IconName } from './icon.tsx'
import type { Tone } from './tone.ts'

type NoteProps = {
  tone: 'warn' | 'danger'
  title: string
  icon?: IconName
  /** Makes it a part of the page that a link leads to. */
  id?: string
  role?: 'alert' | 'status'
  children?: ComponentChildren
}

export function Note({ tone, title, icon, id, role, children }: NoteProps) {
  return (
    <div class={`note tone-${tone}`} role={role} {...(id ? { id, tabIndex: -1 } : {})}>
      {icon ? <Icon name={icon} /> : null}
      <div class="note-body">
        <p class="note-title">{title}</p>
        {children}
      </div>
    </div>
  )
}

/** One sentence inside a card: what is wrong with what it shows. */
export function AlertLine(props: { tone: Tone; children: ComponentChildren; action?: ComponentChildren }) {
  return (
    <p class={`alert-line tone-${props.tone}`}>
      <Icon name="alert" />
      <span>{props.children}</span>
      {props.action}
    </p>
  )
}

export function ErrorNote({ error, what, retry }: { error: unknown; what?: string; retry?: () => unknown }) {
  const known = error instanceof ApiError ? error : undefined
  const detail = error instanceof Error ? error.message : 'Something went wrong.'
  const title = what ?? known?.title ?? 'That did not work'
  return (
    <Note tone="danger" title={title} icon="alert" role="alert">
      {detail !== title ? <Detail text={detail} /> : null}
      {known?.hint ? <p class="muted">{known.hint}</p> : null}
      {retry ? (
        <Button small icon="retry" onClick={() => void retry()}>
          Try again
        </Button>
      ) : null}
    </Note>
  )
}

type LoadedProps<T> = {
  query: { data: T | undefined; error: unknown; refetch: () => unknown }
  /** Of the size of what comes. */
  waiting: ComponentChildren
  children: (data: T) => ComponentChildren
}

/** What was asked for; what stands in its place while it comes, or why it does not come. */
export function Loaded<T>({ query: { data, error, refetch }, waiting, children }: LoadedProps<T>) {
  if (data !== undefined) return <>{children(data)}</>
  return error ? <ErrorNote error={error} retry={refetch} /> : <>{waiting}</>
}

/** A first line in words; those below it show a place in what was typed, with a sign under the letter. */
export function Detail({ text }: { text: string }) {
  const [words, ...place] = text.split('\n')
  return (
    <>
      <p>{words}</p>
      {place.length > 0 ? (
        <pre class="place mono" aria-hidden="true">
          {place.join('\n')}
        </pre>
      ) : null}
    </>
  )
}

export function EmptyNote(props: {
  title: string
  children?: ComponentChildren
  action?: ComponentChildren
}) {
  return (
    <div class="empty">
      <p class="note-title">{props.title}</p>
      {props.children ? <p class="muted">{props.children}</p> : null}
      {props.action}
    </div>
  )
}

/** Stands in the size of what comes, so that nothing moves when it does. */
export function Skeleton({ width = '100%', height = '1em', lines = 1 }: SkeletonProps) {
  return (
    <span class="skeletons" aria-hidden="true">
      {Array.from({ length: lines }, (_, at) => (
        <span
          key={at}
          class="skeleton"
          style={{ inlineSize: at === lines - 1 && lines > 1 ? '60%' : width, blockSize: height }}
        />
      ))}
    </span>
  )
}

type SkeletonProps = { width?: string; height?: string; lines?: number }
