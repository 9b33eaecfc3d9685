/** One message of a thread: a line when closed, everything when open. */
import { Link } from 'wouter-preact'
import { Badge } from '../../../../../web/src/components/badge.tsx'
import { Icon } from '../../../../../web/src/components/icon.tsx'
import { Bytes, Time } from '../../../../../web/src/components/values.tsx'
import { formatDay, formatExact, formatPlural } from '../../../../../web/src/format.ts'
import { DownloadButton } from '../../../../../web/src/ticket.tsx'
import type { MessageView } from '../../api/schemas.ts'
import { messagePath } from '../api.ts'
import { searchLink } from '../links.ts'
import {
  labelQuery,
  labelText,
  mailTime,
  operatorText,
  peopleNames,
  personFull,
  personName,
} from '../search/words.ts'
import { MessageBody } from './message-body.tsx'
import { MessageProof } from './message-proof.tsx'

export type ThreadMessageProps = { message: MessageView; isOpen: boolean; now: number; onToggle: () => void }

export function ThreadMessage({ message, isOpen, now, onToggle }: ThreadMessageProps) {
  const { from, internalMs } = message
  return (
    <article class={`card mail${isOpen ? ' is-open' : ''}`} id={`message-${message.id}`}>
      <h2 class="mail-line-heading">
        <button
          type="button"
          class="mail-line"
          aria-expanded={isOpen}
          data-message={message.id}
          onClick={onToggle}
        >
          <span class="mail-from truncate">{peopleNames(from)}</span>
          <span class="mail-snippet truncate muted">{isOpen ? '' : message.snippet}</span>
          {message.deletedAtMs === null ? null : <Badge tone="warn">Deleted in Gmail</Badge>}
          {message.files.length > 0 && !isOpen ? <Icon name="file" /> : null}
          <time
            class="num muted small"
            dateTime={new Date(internalMs).toISOString()}
            title={formatExact(internalMs)}
          >
            {mailTime(internalMs, now)}
          </time>
        </button>
      </h2>
      {isOpen ? <Opened message={message} /> : null}
    </article>
  )
}

function Opened({ message }: { message: MessageView }) {
  return (
    <div class="mail-open">
      <Head message={message} />
      {message.deletedAtMs === null ? null : (
        <p class="mail-deleted tone-warn">
          Gmail no longer has this message; that was noticed on {formatDay(message.deletedAtMs)}. Tidemark
          keeps its copy.
        </p>
      )}
      <MessageBody message={message} />
      <MessageFiles message={message} />
      <MessageProof message={message} />
    </div>
  )
}

function Head({ message }: { message: MessageView }) {
  const lines = [
    { name: 'From', people: message.from },
    { name: 'To', people: message.to },
    { name: 'Cc', people: message.cc },
    { name: 'Bcc', people: message.bcc },
  ].filter(({ people }) => people.length > 0)
  return (
    <>
      <dl class="facts mail-head">
        {lines.map(({ name, people }) => (
          <div class="fact" key={name}>
            <dt>{name}</dt>
            <dd>
              {people.map((person, at) => (
                <span key={at}>
                  {at > 0 ? ', ' : ''}
                  <Link
                    href={searchLink({ q: operatorText(name === 'From' ? 'from' : 'to', person.address) })}
                    title={`Search for ${personName(person)}`}
                  >
                    {personFull(person)}
                  </Link>
                </span>
              ))}
            </dd>
          </div>
        ))}
        <div class="fact">
          <dt>Date</dt>
          <dd>
            <Time at={message.internalMs} show="full" />
          </dd>
        </div>
      </dl>
      {message.labels.length > 0 ? (
        <ul class="row mail-labels" aria-label="Labels">
          {message.labels.map((label) => (
            <li key={label}>
              <Link class="badge tone-neutral" href={searchLink({ q: labelQuery(label) })}>
                {labelText(label)}
              </Link>
            </li>
          ))}
        </ul>
      ) : null}
    </>
  )
}

/** Attachments; always saved, never opened here. */
export function MessageFiles({ message }: { message: MessageView }) {
  if (message.files.length === 0) return null
  return (
    <div class="mail-files">
      <ul aria-label={formatPlural(message.files.length, 'attachment')}>
        {message.files.map((file) => (
          <li key={file.index}>
            <DownloadButton
              class="mail-file"
              path={`${messagePath(message.account, message.id)}/attachments/${file.index}`}
              title={`${file.name} (${file.type})`}
            >
              <Icon name="file" />
              <span class="mail-file-name truncate">{file.name || 'without a name'}</span>
              <span class="muted small">
                <Bytes value={file.bytes} />
              </span>
              <Icon name="download" />
            </DownloadButton>
          </li>
        ))}
      </ul>
    </div>
  )
}
