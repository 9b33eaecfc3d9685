/** An account of any service: its health, what the apps say of it, and what can be done with it. */
import type { ServiceView } from '../../../src/app/accounts/schemas.ts'
import type { Account } from '../api.ts'
import { api } from '../api.ts'
import { StateBadge } from '../components/badge.tsx'
import { Button } from '../components/button.tsx'
import { Card } from '../components/card.tsx'
import { useConfirm } from '../components/confirm.tsx'
import { AlertLine } from '../components/notes.tsx'
import { keys, useAction } from '../queries.ts'
import type { AccountPart, AccountParts, AccountState } from './account-part.ts'

type Shown = { app: string; part: AccountPart; told: never }

/** The parts of those apps that work for the account, each with what its app says of it. */
function shownOf({ apps }: Account, parts: AccountParts): Shown[] {
  return Object.entries(apps).flatMap(([app, told]) => {
    const part = parts[app]
    return part ? [{ app, part, told: told as never }] : []
  })
}

type AccountCardProps = { account: Account; service: ServiceView; parts: AccountParts; onConnect: () => void }

export function AccountCard({ account, service, parts, onConnect }: AccountCardProps) {
  const shown = shownOf(account, parts)
  const state = accountState(account, service, shown)
  const { tone, hint } = state
  const access = service.levels.find(({ level }) => level === account.access)
  const words = shown.flatMap(({ part, told }) => part.words?.(told) ?? [])
  return (
    <Card
      level={3}
      title={account.title}
      href={shown.flatMap(({ part, told }) => part.href?.(told) ?? [])[0]}
      tone={tone === 'danger' ? 'danger' : 'neutral'}
      actions={<StateBadge state={state} dot />}
    >
      <div class="stack">
        {hint ? <AlertLine tone={tone}>{hint}</AlertLine> : null}
        {shown.map(({ app, part: { Body }, told }) => (
          <Body key={app} told={told} />
        ))}
        <p class="muted small">{[access?.may ?? 'Access not known', ...words].join(' · ')}</p>
        <div class="row">
          {account.state === 'sign-in' ? (
            <Button small kind="primary" icon="person" onClick={onConnect}>
              Connect again
            </Button>
          ) : null}
          {shown.map(({ app, part: { Actions }, told }) =>
            Actions ? <Actions key={app} account={account} told={told} /> : null,
          )}
          <Remove account={account} shown={shown} />
        </div>
      </div>
    </Card>
  )
}

/** By what needs somebody first. */
function accountState(account: Account, { company }: ServiceView, shown: readonly Shown[]): AccountState {
  if (account.state === 'sign-in') {
    return {
      text: 'Sign in again',
      tone: 'danger',
      hint: `${company} no longer lets Tidemark in. Connect the account again; nothing is lost.`,
    }
  }
  const states = shown.flatMap(({ part, told }) => part.state?.(told) ?? [])
  return (
    states.find(({ tone }) => tone === 'danger') ??
    states.find(({ tone }) => tone === 'warn') ??
    states[0] ?? { text: 'Connected', tone: 'accent' }
  )
}

function Remove({ account, shown }: { account: Account; shown: readonly Shown[] }) {
  const confirm = useConfirm()
  const { name } = account
  const remove = useAction({ run: () => api.disconnect(account), invalidates: [keys.accounts] })
  const ask = async (): Promise<void> => {
    const meanings = shown.map(({ part, told }) => part.forgetting(told))
    const isSure = await confirm({
      title: `Forget ${name}?`,
      text: ['Tidemark forgets how to get in and fetches nothing more.', ...meanings].join(' '),
      action: 'Forget the account',
      danger: true,
      typed: name,
    })
    if (isSure) await remove.start()
  }
  return (
    <Button small kind="quiet" busy={remove.busy} onClick={() => void ask()}>
      Remove
    </Button>
  )
}
