/** What a message says: as plain text, as HTML in a frame that can do nothing, or as it came. */
import { useState } from 'preact/hooks'
import type { MessageView } from '../../../src/server/mail-api/schemas.ts'
import { messagePath } from '../api.ts'
import { Button } from '../components/button.tsx'
import { Segmented } from '../components/form.tsx'
import { frameHeightRem } from './frame-height.ts'
import { MessageSource } from './message-source.tsx'

const PLAIN_LOOKS = [
  { value: 'text', text: 'Plain text' },
  { value: 'source', text: 'Source' },
] as const
const LOOKS = [{ value: 'html', text: 'Formatted' }, ...PLAIN_LOOKS] as const
type Look = (typeof LOOKS)[number]['value']

export function MessageBody({ message }: { message: MessageView }) {
  const [look, setLook] = useState<Look>(message.hasHtml ? 'html' : 'text')
  const [showsImages, setShowsImages] = useState(false)
  const [isTall, setTall] = useState(false)
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
            <Button small kind="quiet" aria-pressed={isTall} onClick={() => setTall(!isTall)}>
              {isTall ? 'Less height' : 'More height'}
            </Button>
            {showsImages ? <span class="muted small">Whoever sent it can see that it is read.</span> : null}
          </>
        ) : null}
      </div>
      {isHtml ? (
        <iframe
          key={String(showsImages)}
          class={`mail-frame${isTall ? ' is-tall' : ''}`}
          title={`Message: ${message.subject || '(no subject)'}`}
          src={`${messagePath(message.account, message.id)}/html?images=${showsImages}`}
          // No scripts, no origin, no forms: links may open in a tab of their own, and that is all.
          sandbox="allow-popups allow-popups-to-escape-sandbox"
          referrerpolicy="no-referrer"
          style={{ '--frame': `${frameHeightRem(message.text)}rem` }}
        />
      ) : look === 'source' ? (
        <MessageSource message={message} />
      ) : (
        <PlainText text={message.text} />
      )}
    </div>
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
