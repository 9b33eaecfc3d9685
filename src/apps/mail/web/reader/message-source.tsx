/** A message as it came: headers and all, as text and nothing else. */

import { useQuery } from '@tanstack/preact-query'
import { ErrorNote, Skeleton } from '../../../../../web/src/components/notes.tsx'
import { formatBytes } from '../../../../../web/src/format.ts'
import type { MessageView } from '../../api/schemas.ts'
import { mailApi } from '../api.ts'
import { mailKeys } from '../queries.ts'

/** Nobody reads more; attachments make the rest. */
const SHOWN_BYTES_MAX = 200_000

export function MessageSource({ message }: { message: MessageView }) {
  const { account, id } = message
  const { data, error, refetch } = useQuery({
    queryKey: [...mailKeys.message, 'source', account, id],
    queryFn: ({ signal }) => mailApi.source(account, id, { bytesMax: SHOWN_BYTES_MAX, signal }),
    staleTime: Number.POSITIVE_INFINITY,
  })
  if (error) return <ErrorNote error={error} what="The source cannot be shown" retry={refetch} />
  if (!data) return <Skeleton height="14rem" />
  return (
    <>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, also for those who have no mouse */}
      <section class="mail-source" tabIndex={0} aria-label="Source of the message">
        <pre>{data.text}</pre>
      </section>
      {data.isWhole ? null : (
        <p class="muted small">
          The first {formatBytes(SHOWN_BYTES_MAX)} of {formatBytes(message.bytes)}. Download the original to
          see all of it.
        </p>
      )}
    </>
  )
}
