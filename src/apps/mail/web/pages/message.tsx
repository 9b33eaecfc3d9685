/** Read a message, with the thread that it belongs to. */
import { useEffect, useState } from 'preact/hooks'
import { useLocation, useParams } from 'wouter-preact'
import { Button, ButtonLink } from '../../../../../web/src/components/button.tsx'
import { Card } from '../../../../../web/src/components/card.tsx'
import { Icon } from '../../../../../web/src/components/icon.tsx'
import { ErrorNote, Skeleton } from '../../../../../web/src/components/notes.tsx'
import { PageTitle } from '../../../../../web/src/components/page-title.tsx'
import { formatPlural } from '../../../../../web/src/format.ts'
import { useKeys } from '../../../../../web/src/keyboard.ts'
import { pathPart } from '../../../../../web/src/links.ts'
import { useNow } from '../../../../../web/src/queries.ts'
import type { MessageView } from '../../api/schemas.ts'
import { foldThread } from '../reader/thread.ts'
import { ThreadMessage } from '../reader/thread-message.tsx'
import { lastSearchLink } from '../search/last-search.ts'
import '../styles/message.css'
import { useQuery } from '@tanstack/preact-query'
import { mailApi } from '../api.ts'
import { mailKeys } from '../queries.ts'

export function MessagePage() {
  const params = useParams<{ account: string; id: string }>()
  const account = pathPart(params.account)
  const id = pathPart(params.id)
  const { message, thread, messages } = useThread(account, id)
  const back = lastSearchLink()
  useReaderKeys(back)
  const subject = message.data ? message.data.subject || '(no subject)' : 'Message'
  return (
    <>
      <PageTitle
        title={subject}
        crumbs={[{ text: 'Search', href: back }]}
        lead={
          <span class="num">
            {account}
            {messages.length > 1 ? ` · ${formatPlural(messages.length, 'message')}` : ''}
          </span>
        }
      >
        <ButtonLink href={back} icon="back" small>
          Back
        </ButtonLink>
        {message.data?.gmailUrl ? (
          <a
            class="button button-plain button-small"
            href={message.data.gmailUrl}
            target="_blank"
            rel="noopener noreferrer"
          >
            <Icon name="mail" />
            Open in Gmail
          </a>
        ) : null}
      </PageTitle>
      {message.error && !message.data ? (
        <ErrorNote error={message.error} what="This message cannot be shown" retry={message.refetch} />
      ) : null}
      {thread.error ? (
        <ErrorNote
          error={thread.error}
          what="The rest of its thread cannot be shown"
          retry={thread.refetch}
        />
      ) : null}
      {message.data && (thread.data || thread.error || !thread.isLoading) ? (
        <Thread key={id} id={id} messages={messages} />
      ) : null}
      {message.isLoading || (thread.isLoading && !thread.error) ? <ReaderSkeleton /> : null}
    </>
  )
}

function Thread({ id, messages }: { id: string; messages: MessageView[] }) {
  const now = useNow(60_000)
  const newest = messages.at(-1)?.id
  const [open, setOpen] = useState<ReadonlySet<string>>(() => new Set([id, ...(newest ? [newest] : [])]))
  const [isUnfolded, setUnfolded] = useState(false)
  // At the subject: what came before in the thread is folded, so that the message is not far below.
  useEffect(() => scrollTo({ top: 0 }), [id])
  const toggle = (which: string): void => {
    const next = new Set(open)
    if (!next.delete(which)) next.add(which)
    setOpen(next)
  }
  const parts = foldThread(messages, (message) => isUnfolded || open.has(message.id))
  return (
    <div class="thread">
      {parts.map((part) =>
        'folded' in part ? (
          <Button key={`fold-${part.folded[0]!.id}`} class="thread-fold" onClick={() => setUnfolded(true)}>
            {formatPlural(part.folded.length, 'more message', 'more messages')}
          </Button>
        ) : (
          <ThreadMessage
            key={part.message.id}
            message={part.message}
            isOpen={open.has(part.message.id)}
            now={now}
            onToggle={() => toggle(part.message.id)}
          />
        ),
      )}
    </div>
  )
}

/** Escape and u lead back, as in Gmail; j and k go from message to message. */
function useReaderKeys(back: string): void {
  const [, navigate] = useLocation()
  const move = (step: 1 | -1) => () => {
    const lines = [...document.querySelectorAll<HTMLElement>('[data-message]')]
    const at = lines.indexOf(document.activeElement as HTMLElement)
    const line = at < 0 ? lines.at(step === 1 ? 0 : -1) : lines[at + step]
    line?.focus({ preventScroll: true })
    line?.scrollIntoView({ block: 'nearest' })
  }
  useKeys({
    Escape: () => navigate(back),
    u: () => navigate(back),
    j: move(1),
    k: move(-1),
  })
}

function ReaderSkeleton() {
  return (
    <Card>
      <div class="stack">
        <Skeleton width="40%" height="1.4em" />
        <Skeleton width="60%" lines={2} />
        <Skeleton height="20rem" />
      </div>
    </Card>
  )
}

/** A message, and the thread around it. */
export function useThread(account: string, id: string) {
  const message = useQuery({
    queryKey: [...mailKeys.message, account, id],
    queryFn: ({ signal }) => mailApi.message(account, id, signal),
    // What is stored does not change; labels may, which a later look shows.
    staleTime: 60_000,
  })
  const threadId = message.data?.threadId ?? ''
  const thread = useQuery({
    queryKey: [...mailKeys.message, 'thread', account, threadId],
    queryFn: ({ signal }) => mailApi.thread(account, threadId, signal),
    enabled: threadId !== '',
    staleTime: 60_000,
  })
  return { message, thread, messages: inOrder(message.data, thread.data?.items) }
}

/** Oldest first; the message itself is always among them. */
function inOrder(message: MessageView | undefined, thread: readonly MessageView[] = []): MessageView[] {
  const all = new Map(thread.map((item) => [item.id, item]))
  if (message && !all.has(message.id)) all.set(message.id, message)
  return [...all.values()].sort((a, b) => a.internalMs - b.internalMs || (a.id < b.id ? -1 : 1))
}
