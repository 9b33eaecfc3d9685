/** What a message says: as plain text, as HTML in a frame that can do nothing, or as it came. */

import { useQuery } from '@tanstack/preact-query'
import { useState } from 'preact/hooks'
import { Button } from '../../../../../web/src/components/button.tsx'
import { Segmented } from '../../../../../web/src/components/form.tsx'
import { ErrorNote, Skeleton } from '../../../../../web/src/components/notes.tsx'
import { formatBytes } from '../../../../../web/src/format.ts'
import { useTicket } from '../../../../../web/src/ticket.tsx'
import type { MessageView } from '../../api/schemas.ts'
import { mailApi, messagePath } from '../api.ts'
import { mailKeys } from '../queries.ts'
import { FRAME_PX_MIN, frameHeightPx } from './thread.ts'

const PLAIN_LOOKS = [
  { value: 'text', text: 'Plain text' },
  { value: 'source', text: 'Source' },
] as const
const LOOKS = [{ value: 'html', text: 'Formatted' }, ...PLAIN_LOOKS] as const
type Look = (typeof LOOKS)[number]['value']

export function MessageBody({ message }: { message: MessageView }) {
  const [look, setLook] = useState<Look>(message.hasHtml ? 'html' : 'text')
  const [showsImages, setShowsImages] = useState(false)
  const isHtml = message.hasHtml && look === 'html'
  return (
    <div class="mail-body">
      <div class="row mail-looks">
        <Segmented
          label="Show this message as"
          options={message.hasHtml ? LOOKS : PLAIN_LOOKS}
          value={look}
          onChange={setLook}
        />
        {isHtml ? (
          <>
            <Button
              small
              kind="quiet"
              aria-pressed={showsImages}
              onClick={() => setShowsImages(!showsImages)}
            >
              {showsImages ? 'Hide remote images' : 'Show remote images'}
            </Button>
            {showsImages ? <span class="muted small">Whoever sent it can see that it is read.</span> : null}
          </>
        ) : null}
      </div>
      {isHtml ? (
        <MailFrame key={String(showsImages)} message={message} showsImages={showsImages} />
      ) : look === 'source' ? (
        <MessageSource message={message} />
      ) : (
        <PlainText text={message.text} />
      )}
    </div>
  )
}

function MailFrame({ message, showsImages }: { message: MessageView; showsImages: boolean }) {
  const { href, error } = useTicket(`${messagePath(message.account, message.id)}/html?images=${showsImages}`)
  if (error) return <ErrorNote error={error} what="The message cannot be shown" />
  // An estimate of the server, from its text: the frame cannot be measured. That takes a script inside of it, or the
  // page's own origin for it (allow-same-origin), in which one hole in the cleaning of mail would be at the session.
  const { narrowPx = FRAME_PX_MIN, widePx = FRAME_PX_MIN } = message.htmlHeights ?? {}
  const look = {
    class: 'mail-frame',
    style: { '--narrow': `${frameHeightPx(narrowPx)}px`, '--wide': `${frameHeightPx(widePx)}px` },
  }
  // No frame yet: one that is given its address later would be a step back in the history.
  if (href === undefined) return <div {...look} aria-busy="true" />
  return (
    <iframe
      {...look}
      title={`Message: ${message.subject || '(no subject)'}`}
      src={href}
      // No scripts, no origin, no forms: links may open in a tab of their own, and that is all.
      sandbox="allow-popups allow-popups-to-escape-sandbox"
      referrerpolicy="no-referrer"
    />
  )
}

function PlainText({ text }: { text: string }) {
  if (text.trim() === '') return <p class="muted">This message has no text.</p>
  return (
    <pre class="mail-text" dir="auto">
      {text}
    </pre>
  )
}

/** A message as it came: headers and all, as text and nothing else. */
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
