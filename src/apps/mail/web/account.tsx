/** A mail account: how far its copy reaches, what it holds, and what of the mail is wanted. */

import type { Account } from '../../../../web/src/api.ts'
import { BalanceLine } from '../../../../web/src/components/balance-line.tsx'
import { Command } from '../../../../web/src/components/copy-button.tsx'
import { Switch } from '../../../../web/src/components/form.tsx'
import { PauseButton, SyncButton } from '../../../../web/src/components/source-buttons.tsx'
import { Stat } from '../../../../web/src/components/stat.tsx'
import { Time } from '../../../../web/src/components/values.tsx'
import { formatBytes, formatCount, formatPlural } from '../../../../web/src/format.ts'
import { streamLink } from '../../../../web/src/links.ts'
import { keys } from '../../../../web/src/queries.ts'
import type { AccountPart } from '../../../../web/src/settings/account-part.ts'
import type { MailAccountView } from '../api/schemas.ts'
import { mailState, quotaTier, verifiedText } from './account-state.ts'
import { mailApi } from './api.ts'

export const mailPart: AccountPart<MailAccountView> = {
  state: mailState,
  href: ({ stream }) => streamLink(stream),
  words: choiceWords,
  Body: MailBody,
  Actions: MailActions,
  forgetting: () =>
    'The archive of its mail stays on disk, but cannot be searched here until the account is connected again.',
  choices: {
    // As on the command line: what lies in the trash may be wanted again.
    initial: { spam: false, trash: true },
    Fields: ({ chosen, onChange }) => (
      <div class="row connect-switches">
        <Switch
          label="Copy spam as well"
          checked={chosen.spam!}
          onChange={(spam) => onChange({ ...chosen, spam })}
        />
        <Switch
          label="Copy the trash as well"
          checked={chosen.trash!}
          onChange={(trash) => onChange({ ...chosen, trash })}
        />
      </div>
    ),
  },
}

function MailBody({ told }: { told: MailAccountView }) {
  return (
    <>
      <BalanceLine
        counts={{ ...told, gone: told.gone + told.lost }}
        badHref={`${streamLink(told.stream)}#bad`}
      />
      {told.inGmail === null ? null : (
        <p class="muted small">
          In Gmail: {told.inGmail} (<Time at={told.gmail?.atMs ?? null} />)
        </p>
      )}
      <dl class="stats account-stats">
        <Stat
          label="Complete up to"
          value={<Time at={told.watermarkMs} show="day" />}
          hint={
            <>
              as of <Time at={told.watermarkAsOfMs ?? told.checkedAtMs} />
            </>
          }
        />
        <Stat
          label="On disk"
          value={formatBytes(told.fileBytes)}
          hint={`${formatPlural(told.files, 'file')}; ${formatBytes(told.rawBytes)} of mail`}
        />
        <Stat
          label="Verified"
          value={told.verified ? <Time at={told.verified.atMs} /> : 'never'}
          hint={verifiedText(told.verified)}
        />
        <Stat
          label="Quota a minute"
          value={formatCount(told.unitsPerMinute)}
          hint={`units; ${quotaTier(told.unitsPerMinute)}`}
        />
      </dl>
      <VerifyHint verified={told.verified} />
      <Damage files={told.damagedFiles} />
    </>
  )
}

function choiceWords({ choices, labels }: MailAccountView): string[] {
  const { spam, trash, onlyLabels, skipLabels } = choices
  const nameOf = (id: string): string => labels.find((label) => label.id === id)?.name ?? id
  return [
    spam ? 'with spam' : 'without spam',
    trash ? 'with the trash' : 'without the trash',
    ...(onlyLabels.length > 0 ? [`only ${onlyLabels.map(nameOf).join(', ')}`] : []),
    ...(skipLabels.length > 0 ? [`not ${skipLabels.map(nameOf).join(', ')}`] : []),
  ]
}

function VerifyHint({ verified }: Pick<MailAccountView, 'verified'>) {
  const isWrong = verified !== null && verified.damaged + verified.brokenFiles + (verified.missing ?? 0) > 0
  if (verified && !isWrong) return null
  return (
    <p class="small">
      {isWrong ? 'To fetch again what is damaged: ' : 'To read every message back and compare it: '}
      <Command text={`tidemark mail verify${isWrong ? ' --repair' : ''}`} />
    </p>
  )
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

function MailActions({ account: { name, state }, told }: { account: Account; told: MailAccountView }) {
  const { stream: target, paused } = told
  return (
    <>
      {state === 'sign-in' ? null : (
        <SyncButton small run={() => mailApi.sync(name)} disabled={paused} invalidates={[keys.accounts]} />
      )}
      <PauseButton
        small
        target={{ scope: 'stream', target }}
        isPaused={paused}
        reason="paused on the page of settings"
      />
    </>
  )
}
