/** One thread: why it was sorted so, the mail with its draft and what that leans on, and what happened, with an undo. */
import { useEffect, useState } from 'preact/hooks'
import { useParams } from 'wouter-preact'
import { Badge, StateBadge } from '../../../../../web/src/components/badge.tsx'
import { Button } from '../../../../../web/src/components/button.tsx'
import { Card } from '../../../../../web/src/components/card.tsx'
import { SelectField, TextField } from '../../../../../web/src/components/form.tsx'
import { AlertLine, Loaded, Skeleton } from '../../../../../web/src/components/notes.tsx'
import { PageTitle } from '../../../../../web/src/components/page-title.tsx'
import { Time } from '../../../../../web/src/components/values.tsx'
import { pathPart, safeAddress } from '../../../../../web/src/links.ts'
import { useAction } from '../../../../../web/src/queries.ts'
import type { CategoryView, EventView, MessageView, ThreadDetailView } from '../../api/schemas.ts'
import { assistApi, assistLink, TOUCHED, useThread, useThreadMail } from '../queries.ts'
import { CATEGORIES, CATEGORY_TEXTS, decidedText, STATUS_TEXTS } from '../words.ts'
import '../styles/assist.css'

export function ThreadPage() {
  const params = useParams<{ account: string; thread: string }>()
  const thread = useThread(pathPart(params.account), pathPart(params.thread))
  const { data } = thread
  return (
    <>
      <PageTitle
        title={data?.subject || 'Thread'}
        lead={data === undefined ? undefined : <From thread={data} />}
        crumbs={[{ text: 'Assistant', href: assistLink() }]}
      />
      <Loaded query={thread} waiting={<Skeleton height="16rem" />}>
        {(one) => (
          <div class="stack">
            <Mail thread={one} />
            {one.draft === null || one.status === 'pending' ? (
              <NoDraft thread={one} />
            ) : (
              <Draft key={one.draft.text} thread={one} draft={one.draft} />
            )}
            <Sorted thread={one} />
            <History thread={one} />
          </div>
        )}
      </Loaded>
    </>
  )
}

function From({ thread }: { thread: ThreadDetailView }) {
  const { sender, url } = thread
  const address = safeAddress(url)
  return (
    <span class="assist-text">
      {sender}
      {address === undefined ? null : (
        <>
          {' · '}
          <a href={address} target="_blank" rel="noreferrer">
            Open in Gmail
          </a>
        </>
      )}
    </span>
  )
}

function Sorted({ thread }: { thread: ThreadDetailView }) {
  const [category, setCategory] = useState<CategoryView | ''>(thread.category ?? '')
  const change = useAction({
    run: () => assistApi.reclassify(thread, category as CategoryView),
    invalidates: TOUCHED,
  })
  return (
    <Card
      title={thread.category === null ? 'Not sorted yet' : CATEGORY_TEXTS[thread.category]}
      actions={<StateBadge state={STATUS_TEXTS[thread.status]} dot />}
    >
      <div class="stack">
        {thread.problem === null ? null : <AlertLine tone="warn">{thread.problem}</AlertLine>}
        <p class="assist-text">{thread.reasoning}</p>
        <p class="muted small">
          Decided {decidedText(thread)}
          {thread.isAutomated ? ' · sent by a program' : ''}
          {thread.language === '' ? '' : ` · language ${thread.language}`}
          {thread.style === '' ? '' : ` · style ${thread.style}`}
        </p>
        <div class="row assist-change">
          <SelectField
            label="Belongs to"
            value={category}
            options={CATEGORIES.map((value) => ({ value, text: CATEGORY_TEXTS[value] }))}
            onChange={setCategory}
          />
          <Button
            busy={change.busy}
            disabled={category === '' || category === thread.category}
            onClick={() => void change.start()}
          >
            Move it there
          </Button>
        </div>
        <p class="muted small">
          What you move is remembered as an example, and proposed as a rule, which is off until you switch it
          on.
        </p>
      </div>
    </Card>
  )
}

function Mail({ thread }: { thread: ThreadDetailView }) {
  const mail = useThreadMail(thread)
  return (
    <Card title="The mail">
      <Loaded query={mail} waiting={<Skeleton height="8rem" />}>
        {({ items, older }) => (
          <div class="stack">
            {items.length === 0 ? <p class="muted">It is not in the mailbox any more.</p> : null}
            {items.map((one, at) =>
              at === 0 ? (
                <Letter key={one.id} message={one} />
              ) : (
                <details key={one.id} class="assist-letter">
                  <summary>
                    <LetterHead message={one} />
                  </summary>
                  <LetterText message={one} />
                </details>
              ),
            )}
            {older === 0 ? null : <p class="muted small">{older} older messages are not shown here.</p>}
          </div>
        )}
      </Loaded>
    </Card>
  )
}

function Letter({ message }: { message: MessageView }) {
  return (
    <article
      class="assist-letter"
      aria-label={message.isAnswered ? 'What is answered' : 'The newest message'}
    >
      <LetterHead message={message} />
      <LetterText message={message} />
    </article>
  )
}

function LetterHead({ message: { from, sentAtMs, isOwn, hidden } }: { message: MessageView }) {
  return (
    <span class="assist-text">
      <b>{isOwn ? 'You' : from}</b>{' '}
      <span class="muted small">
        <Time at={sentAtMs} />
      </span>{' '}
      {hidden === null ? null : <Badge tone="warn">Hides text</Badge>}
    </span>
  )
}

/** Text and nothing else: a stranger has written it. */
function LetterText({ message }: { message: MessageView }) {
  const { to, text, isCut, attachments, hidden } = message
  return (
    <>
      {to.length === 0 ? null : <p class="muted small assist-text">to {to.join(', ')}</p>}
      {hidden === null ? null : (
        <AlertLine tone="warn">
          This mail hides text from its reader, {hidden.ways.map((way) => way.text).join(', ')}. No model was
          given it{hidden.excerpt === '' ? '.' : `: “${hidden.excerpt}”`}
        </AlertLine>
      )}
      <pre class="assist-pre assist-words">{text === '' ? '(no text)' : text}</pre>
      {isCut ? <p class="muted small">There is more of it: open it in Gmail.</p> : null}
      {attachments.length === 0 ? null : (
        <p class="muted small assist-text">Attached: {attachments.join(', ')}</p>
      )}
    </>
  )
}

/** What is written while a draft is would be lost with the one that it replaces. */
function NoDraft({ thread }: { thread: ThreadDetailView }) {
  const [wish, setWish] = useState('')
  const ask = useAction({ run: () => assistApi.draft(thread, wish), invalidates: TOUCHED })
  if (thread.status === 'pending' && thread.problem === null) {
    return (
      <Card title="Draft">
        <p class="muted" role="status">
          A draft is being written.
        </p>
      </Card>
    )
  }
  return (
    <Card title="No draft">
      <div class="stack">
        {thread.problem === null ? null : <p class="assist-text">{thread.problem}</p>}
        <TextField
          label="Have one written"
          hint="What it should say, in your own words; or nothing"
          rows={2}
          value={wish}
          onChange={setWish}
        />
        <div class="row">
          <Button busy={ask.busy} onClick={() => void ask.start()}>
            Write a draft
          </Button>
        </div>
      </div>
    </Card>
  )
}

const GAPS_MAX = 10

/** What a model was not told, and says so. */
function gapsIn(text: string): string[] {
  return [...text.matchAll(/\[TODO:\s*([^\]\n]{1,200})\]/g)]
    .slice(0, GAPS_MAX)
    .map(([, what]) => what!.trim())
}

type DraftOf = NonNullable<ThreadDetailView['draft']>

function Draft({ thread, draft }: { thread: ThreadDetailView; draft: DraftOf }) {
  const [text, setText] = useState(draft.text)
  const [wish, setWish] = useState('')
  const save = useAction({ run: () => assistApi.edit(thread, text), invalidates: TOUCHED })
  const rework = useAction({
    run: () => assistApi.rework(thread, wish),
    invalidates: TOUCHED,
    done: () => setWish(''),
  })
  const approve = useAction({ run: () => assistApi.approve(thread), invalidates: TOUCHED })
  useEffect(() => setText(draft.text), [draft.text])
  const isChanged = text !== draft.text
  const gaps = gapsIn(text)
  return (
    <Card
      title="Draft"
      actions={
        <>
          {draft.isEdited ? <Badge tone="accent">Edited by you</Badge> : null}
          <span class="muted small">
            reworked {thread.reworks} of {thread.reworksMax} times
          </span>
        </>
      }
    >
      <div class="stack">
        {draft.removed.length === 0 ? null : (
          <AlertLine tone="warn">
            Taken out of what the model wrote: {draft.removed.map((one) => one.text).join('; ')}
          </AlertLine>
        )}
        {gaps.length === 0 ? null : (
          <AlertLine tone="warn">
            Nobody knew: {gaps.join('; ')}. Fill that in, where the draft says [TODO: …].
          </AlertLine>
        )}
        <TextField label="The answer, as it stands in Gmail" rows={12} value={text} onChange={setText} />
        <div class="row">
          <Button busy={save.busy} disabled={!isChanged} onClick={() => void save.start()}>
            Save the draft
          </Button>
          <Button
            kind="primary"
            busy={approve.busy}
            disabled={isChanged}
            onClick={() => void approve.start()}
          >
            Approve
          </Button>
          <span class="muted small">You send it in Gmail: Tidemark never does.</span>
        </div>
        <TextField
          label="Write it anew"
          hint="What should be different, in your own words"
          rows={2}
          value={wish}
          onChange={setWish}
        />
        <div class="row">
          <Button
            icon="retry"
            busy={rework.busy}
            disabled={wish.trim() === '' || thread.reworks >= thread.reworksMax}
            onClick={() => void rework.start()}
          >
            Rework
          </Button>
        </div>
        <Sources draft={draft} />
      </div>
    </Card>
  )
}

function Sources({ draft: { sources } }: { draft: DraftOf }) {
  if (sources.length === 0) return <p class="muted small">It leans on the thread alone.</p>
  return (
    <div>
      <p class="muted small">It leans on the thread and on:</p>
      <ul class="assist-sources">
        {sources.map((one) => {
          const address = safeAddress(one.url)
          return (
            <li key={one.documentId} class="assist-text">
              {address === undefined ? (
                one.title
              ) : (
                <a href={address} target="_blank" rel="noreferrer">
                  {one.title}
                </a>
              )}{' '}
              <span class="muted small">{one.source}</span>
            </li>
          )
        })}
      </ul>
    </div>
  )
}

function History({ thread }: { thread: ThreadDetailView }) {
  return (
    <Card title="What happened">
      <ol class="assist-events">
        {thread.events.map((event) => (
          <Happened key={event.id} thread={thread} event={event} />
        ))}
      </ol>
    </Card>
  )
}

function Happened({ thread, event }: { thread: ThreadDetailView; event: EventView }) {
  const undo = useAction({ run: () => assistApi.undo(thread, event.id), invalidates: TOUCHED })
  return (
    <li>
      <span class="muted small">
        <Time at={event.atMs} /> · {event.by}
      </span>
      <div class="row">
        <span class="assist-text">{event.text}</span>
        {event.canUndo ? (
          <Button
            small
            icon="undo"
            busy={undo.busy}
            aria-label={`Undo: ${event.text}`}
            onClick={() => void undo.start()}
          >
            Undo
          </Button>
        ) : null}
      </div>
    </li>
  )
}
