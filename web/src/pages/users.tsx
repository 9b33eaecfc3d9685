/** For admins: who there is, how far their accounts are, how they get in, and what was done in their name. */
import { useQuery, useQueryClient } from '@tanstack/preact-query'
import { useState } from 'preact/hooks'
import { Link } from 'wouter-preact'
import type { UserView } from '../../../src/app/users/schemas.ts'
import { api } from '../api.ts'
import { Badge } from '../components/badge.tsx'
import { Button } from '../components/button.tsx'
import { Card } from '../components/card.tsx'
import { useConfirm } from '../components/confirm.tsx'
import { CopyButton } from '../components/copy-button.tsx'
import { Field, SelectField } from '../components/form.tsx'
import { EmptyNote, Loaded, Skeleton } from '../components/notes.tsx'
import { PageTitle } from '../components/page-title.tsx'
import { showToast } from '../components/toast-store.ts'
import { formatExact, formatPlural } from '../format.ts'
import { keys } from '../queries.ts'
import { SyncLine } from '../users/sync-line.tsx'
import '../styles/users.css'

const OWNER_ID = 1

export function UsersPage() {
  const users = useQuery({ queryKey: keys.users, queryFn: ({ signal }) => api.users(signal) })
  return (
    <>
      <PageTitle
        title="Users"
        lead="Each sees what is kept of their own accounts. Admins see that of others only by saying so, and it is written down."
      />
      <div class="stack users">
        <Loaded query={users} waiting={<Skeleton height="10rem" />}>
          {({ items }) => (
            <div class="grid-cards">
              {items.map((user) => (
                <UserCard key={user.id} user={user} />
              ))}
              <AddCard />
            </div>
          )}
        </Loaded>
        <Audit />
      </div>
    </>
  )
}

/** Says what came of it, and looks again at who there is. */
function useChange() {
  const client = useQueryClient()
  return async (run: () => Promise<string>): Promise<void> => {
    try {
      showToast(await run(), { tone: 'accent' })
    } catch (thrown) {
      showToast(thrown instanceof Error ? thrown.message : 'That did not work.', { tone: 'danger' })
    }
    for (const queryKey of [keys.users, keys.accounts, ['audit']]) void client.invalidateQueries({ queryKey })
  }
}

function UserCard({ user }: { user: UserView }) {
  const isActive = user.state === 'active'
  return (
    <Card
      title={user.name}
      actions={
        <>
          <Badge tone={user.role === 'admin' ? 'accent' : 'neutral'}>{user.role}</Badge>
          {isActive ? null : <Badge tone="warn">disabled</Badge>}
        </>
      }
    >
      {user.accounts.length === 0 ? (
        <p class="muted small">No account is connected for {user.name}.</p>
      ) : (
        <>
          <ul class="user-accounts">
            {user.accounts.map(({ service, name }) => (
              <li key={`${service}:${name}`}>
                <span class="muted">{service}</span> {name}
              </li>
            ))}
          </ul>
          <SyncLine userId={user.id} name={user.name} />
        </>
      )}
      <p class="muted small">{user.tokens === 0 ? 'No tokens' : formatPlural(user.tokens, 'token')}</p>
      <UserActions user={user} />
    </Card>
  )
}

function UserActions({ user }: { user: UserView }) {
  const change = useChange()
  const confirm = useConfirm()
  const [secret, setSecret] = useState<{ what: string; text: string }>()
  const isOwner = user.id === OWNER_ID
  const isActive = user.state === 'active'
  const remove = async (): Promise<void> => {
    const yes = await confirm({
      title: `Remove ${user.name}?`,
      text: 'Their tokens and sessions end. What is kept of accounts stays.',
      action: `Remove ${user.name}`,
      danger: true,
    })
    if (yes) await change(async () => (await api.removeUser(user.id)).text)
  }
  return (
    <>
      <div class="row">
        {user.accounts.length > 0 && !isOwner ? (
          <Link class="button button-plain button-small" href={`/find?as=${encodeURIComponent(user.name)}`}>
            View as {user.name}
          </Link>
        ) : null}
        <Button
          small
          disabled={!isActive}
          onClick={() =>
            void change(async () => {
              const { href } = await api.userSignIn(user.id)
              setSecret({ what: 'the address', text: new URL(href, location.origin).href })
              return `The address signs ${user.name} in, once, within 15 minutes.`
            })
          }
        >
          Sign-in address
        </Button>
        <Button
          small
          disabled={!isActive}
          onClick={() =>
            void change(async () => {
              const { token } = await api.addUserToken(user.id, 'made on the page of users')
              setSecret({ what: 'the token', text: token })
              return 'The token is shown this once.'
            })
          }
        >
          New token
        </Button>
        {isOwner ? null : (
          <>
            <Button
              small
              onClick={() =>
                void change(async () => {
                  await api.changeUser(user.id, { state: isActive ? 'disabled' : 'active' })
                  return isActive ? `${user.name} is let in no more.` : `${user.name} is let in again.`
                })
              }
            >
              {isActive ? 'Disable' : 'Enable'}
            </Button>
            {user.accounts.length === 0 ? (
              <Button small kind="danger" onClick={() => void remove()}>
                Remove
              </Button>
            ) : null}
          </>
        )}
      </div>
      {secret ? (
        <div class="user-secret">
          <code class="mono">{secret.text}</code>
          <CopyButton text={secret.text} label={secret.what} />
        </div>
      ) : null}
    </>
  )
}

const ROLES = [
  { value: 'member', text: 'Member: finds what is theirs' },
  { value: 'admin', text: 'Admin: looks after everything' },
] as const

function AddCard() {
  const change = useChange()
  const [name, setName] = useState('')
  const [role, setRole] = useState<UserView['role']>('member')
  return (
    <Card title="Add a user">
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault()
          void change(async () => {
            const user = await api.addUser({ name, role })
            setName('')
            return `${user.name} is added. Hand them a sign-in address.`
          })
        }}
      >
        <Field label="Name" hint="An address, or one word">
          {(control) => (
            <input
              {...control}
              value={name}
              maxLength={200}
              autocomplete="off"
              onInput={(event) => setName(event.currentTarget.value)}
            />
          )}
        </Field>
        <SelectField label="Role" value={role} options={ROLES} onChange={setRole} />
        <div class="row">
          <Button type="submit" kind="primary" disabled={name.trim() === ''}>
            Add
          </Button>
        </div>
      </form>
    </Card>
  )
}

const ACTIONS: Record<string, string> = {
  'view-as': 'saw with the eyes of',
  who: 'asked who can see',
  'user-added': 'added',
  'user-changed': 'changed',
  'user-removed': 'removed',
  'token-made': 'made a token for',
  'token-revoked': 'revoked a token of',
  'sign-in-made': 'made a sign-in address for',
  'client-set': 'set the sign-in client of',
  'client-removed': 'forgot the sign-in client of',
  'setting-changed': 'changed the setting',
}

function Audit() {
  const audit = useQuery({ queryKey: ['audit'], queryFn: ({ signal }) => api.audit({ limit: 50 }, signal) })
  return (
    <section class="stack" aria-label="What was done">
      <h2>What was done</h2>
      <Loaded query={audit} waiting={<Skeleton height="6rem" />}>
        {({ items }) =>
          items.length === 0 ? (
            <EmptyNote title="Nothing yet">
              What admins do for users, and with their eyes, is listed here.
            </EmptyNote>
          ) : (
            <ol class="audit">
              {items.map(({ id, atMs, userName, action, subject }) => (
                <li key={id}>
                  <time class="muted small num" dateTime={new Date(atMs).toISOString()}>
                    {formatExact(atMs)}
                  </time>
                  <span>
                    <b>{userName}</b> {ACTIONS[action] ?? action} {subject}
                  </span>
                </li>
              ))}
            </ol>
          )
        }
      </Loaded>
    </section>
  )
}
