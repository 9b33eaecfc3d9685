/** A message, and the thread around it. */

import { useQuery } from '@tanstack/preact-query'
import type { MessageView } from '../../api/schemas.ts'
import { mailApi } from '../api.ts'
import { mailKeys } from '../queries.ts'

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
