/** What the search page says beside its results: how to ask, what was not searched, and why there is nothing. */

import { Button, ButtonLink } from '../../../../../web/src/components/button.tsx'
import { EmptyNote, Note } from '../../../../../web/src/components/notes.tsx'
import { formatPlural } from '../../../../../web/src/format.ts'
import { settingsLink } from '../../../../../web/src/links.ts'
import type { SearchAnswer } from '../../api/schemas.ts'

const EXAMPLES = [
  { q: 'has:attachment', what: 'with files' },
  { q: 'newer_than:7d', what: 'of this week' },
  { q: 'is:unread', what: 'not read yet' },
  { q: 'larger:5M', what: 'large ones' },
  { q: 'older_than:5y', what: 'from long ago' },
  { q: 'is:deleted', what: 'no longer in Gmail' },
]

export function Examples({ onPick }: { onPick: (q: string) => void }) {
  return (
    <section class="examples row" aria-label="Examples">
      {EXAMPLES.map(({ q, what }) => (
        <button key={q} type="button" class="example" onClick={() => onPick(q)}>
          <code>{q}</code>
          <span class="muted small">{what}</span>
        </button>
      ))}
    </section>
  )
}

export function Unsearched({ shards }: { shards: SearchAnswer['unsearched'] }) {
  if (shards.length === 0) return null
  return (
    <Note
      tone="warn"
      icon="alert"
      role="status"
      title={`${formatPlural(shards.length, 'file of the archive was', 'files of the archive were')} not searched`}
    >
      <p>Messages in there may be missing below.</p>
      <details>
        <summary>Which, and why</summary>
        <ul class="unsearched small">
          {shards.map(({ account, shard, reason }) => (
            <li key={`${account}/${shard}`}>
              {shard === '' ? <b>{account}</b> : <code>{shard}</code>}{' '}
              <span class="muted">{shard === '' ? '(all of it)' : `of ${account}`}:</span> {reason}
            </li>
          ))}
        </ul>
      </details>
    </Note>
  )
}

export function NothingFound({ q, onClear }: { q: string; onClear: (() => void) | undefined }) {
  return (
    <EmptyNote
      title={q.trim() === '' ? 'No mail yet' : 'Nothing found'}
      action={onClear ? <Button onClick={onClear}>Search all accounts</Button> : undefined}
    >
      {q.trim() === ''
        ? 'As soon as the first messages are stored they can be found here.'
        : 'Try fewer words, the beginning of a word with a star (invoi*), or leave out an operator. Mail that is not copied yet cannot be found.'}
    </EmptyNote>
  )
}

export function NoAccounts() {
  return (
    <EmptyNote
      title="There is no mail to search yet"
      action={
        <ButtonLink href={settingsLink()} kind="primary" icon="person">
          Connect an account
        </ButtonLink>
      }
    >
      Connect a Gmail account; what is copied can be found here at once.
    </EmptyNote>
  )
}
