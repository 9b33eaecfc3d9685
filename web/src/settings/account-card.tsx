/** An account: health, how far its copy reaches, what it holds, and what can be done with it. */
import type { MailAccountView } from '../../../src/server/mail-api/schemas.ts'
import { api } from '../api.ts'
import { Badge } from '../components/badge.tsx'
import { BalanceLine } from '../components/balance-line.tsx'
import { Button } from '../components/button.tsx'
import { Card } from '../components/card.tsx'
import { useConfirm } from '../components/confirm.tsx'
import { Icon } from '../components/icon.tsx'
import { Stat } from '../components/stat.tsx'
import { Time } from '../components/values.tsx'
import { formatBytes, formatCount, formatPlural } from '../format.ts'
import { streamLink } from '../links.ts'
import { keys, useAction } from '../queries.ts'
import { ACCESS_TEXTS, accountState, quotaTier } from './account-state.ts'

export function AccountCard({ account, onConnect }: { account: MailAccountView; onConnect: () => void }) {
  const { text, tone, hint } = accountState(account)
  return (
    <Card
      level={3}
      title={account.name}
      href={streamLink(account.stream)}
      tone={tone === 'danger' ? 'danger' : 'neutral'}
      actions={
        <Badge tone={tone} dot>
          {text}
        </Badge>
      }
    >
      <div class="stack">
        {hint ? (
          <p class={`account-hint tone-${tone}`}>
            <Icon name="alert" />
            <span>{hint}</span>
          </p>
        ) : null}
        <BalanceLine counts={account} badHref={`${streamLink(account.stream)}#bad`} />
        <dl class="stats account-stats">
          <Stat
            label="Complete until"
            value={<Time at={account.watermarkMs} show="day" />}
            hint={
              <>
                checked <Time at={account.checkedAtMs} />
              </>
            }
          />
          <Stat
            label="On disk"
            value={formatBytes(account.fileBytes)}
            hint={`${formatPlural(account.files, 'file')}; ${formatBytes(account.rawBytes)} of mail`}
          />
          <Stat
            label="Quota a minute"
            value={formatCount(account.unitsPerMinute)}
            hint={`units; ${quotaTier(account.unitsPerMinute)}`}
          />
        </dl>
        <Choices account={account} />
        <Damage files={account.damagedFiles} />
        <Actions account={account} onConnect={onConnect} />
      </div>
    </Card>
  )
}

function Choices({ account }: { account: MailAccountView }) {
  const { spam, trash, onlyLabels, skipLabels } = account.choices
  const nameOf = (id: string): string => account.labels.find((label) => label.id === id)?.name ?? id
  const parts = [
    account.access === null ? 'Access not known' : ACCESS_TEXTS[account.access],
    spam ? 'with spam' : 'without spam',
    trash ? 'with the trash' : 'without the trash',
    ...(onlyLabels.length > 0 ? [`only ${onlyLabels.map(nameOf).join(', ')}`] : []),
    ...(skipLabels.length > 0 ? [`not ${skipLabels.map(nameOf).join(', ')}`] : []),
  ]
  return <p class="muted small">{parts.join(' · ')}</p>
}

function Damage({ files }: { files: readonly string[] }) {
  if (files.length === 0) return null
  return (
    <details open>
      <summary class="small">{formatPlural(files.length, 'damaged file')}</summary>
      <ul class="small damaged">
        {files.map((file) => (
          <li key={file}>
            <code>{file}</code>
          </li>
        ))}
      </ul>
    </details>
  )
}

function Actions({ account, onConnect }: { account: MailAccountView; onConnect: () => void }) {
  const confirm = useConfirm()
  const { name, stream, paused } = account
  const invalidates = [keys.accounts]
  const sync = useAction({ run: () => api.sync(name), invalidates })
  const pause = useAction({
    run: () =>
      paused
        ? api.resume({ scope: 'stream', target: stream })
        : api.pause({ scope: 'stream', target: stream, reason: 'paused on the page of settings' }),
    invalidates,
  })
  const remove = useAction({ run: () => api.disconnect(name), invalidates })
  const askRemove = async (): Promise<void> => {
    const isSure = await confirm({
      title: `Forget ${name}?`,
      text: 'Tidemark forgets how to get in and fetches nothing more. The archive of its mail stays on disk, but cannot be searched here until the account is connected again.',
      action: 'Forget the account',
      danger: true,
      typed: name,
    })
    if (isSure) await remove.start()
  }
  return (
    <div class="row">
      {account.state === 'sign-in' ? (
        <Button small kind="primary" icon="person" onClick={onConnect}>
          Connect again
        </Button>
      ) : (
        <Button small icon="retry" busy={sync.busy} disabled={paused} onClick={() => void sync.start()}>
          Sync now
        </Button>
      )}
      <Button small icon={paused ? 'play' : 'pause'} busy={pause.busy} onClick={() => void pause.start()}>
        {paused ? 'Resume' : 'Pause'}
      </Button>
      <Button small kind="quiet" busy={remove.busy} onClick={() => void askRemove()}>
        Remove
      </Button>
    </div>
  )
}
