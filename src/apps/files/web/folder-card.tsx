/** One folder at a glance: how it stands, what is on the way, what needs somebody. */

import { Badge } from '../../../../web/src/components/badge.tsx'
import { ButtonLink } from '../../../../web/src/components/button.tsx'
import { Card } from '../../../../web/src/components/card.tsx'
import { Icon } from '../../../../web/src/components/icon.tsx'
import { ProgressBar } from '../../../../web/src/components/progress-bar.tsx'
import { Stat } from '../../../../web/src/components/stat.tsx'
import { Time } from '../../../../web/src/components/values.tsx'
import { formatBytes, formatCount, formatPlural } from '../../../../web/src/format.ts'
import type { FolderView, TransfersView } from '../api/schemas.ts'
import { FOLDER_STATES, folderNeeds, MODES, workText } from './folder-state.ts'
import { folderLink } from './links.ts'

export function FolderCard({ folder, transfers }: { folder: FolderView; transfers: TransfersView }) {
  const { text, tone } = FOLDER_STATES[folder.state]
  const work = workText(folder, transfers)
  const doneBytes = transfers.upload.doneBytes + transfers.download.doneBytes
  const totalBytes = transfers.upload.totalBytes + transfers.download.totalBytes
  return (
    <Card
      class="folder-card"
      title={folder.name}
      href={folderLink(folder.name)}
      tone={tone === 'danger' ? 'danger' : 'neutral'}
      actions={
        <Badge tone={tone} dot>
          {text}
        </Badge>
      }
    >
      <div class="stack">
        <p>{folder.text}</p>
        {folderNeeds(folder).map((need) => (
          <p key={need.key} class="folder-need tone-danger">
            <Icon name="alert" />
            <span>{need.text}</span>
            <ButtonLink
              small
              href={
                need.view === 'deletes'
                  ? `${folderLink(folder.name)}#deletes`
                  : folderLink(folder.name, 'conflicts')
              }
              aria-label={`Look at it: ${need.text} in ${folder.name}`}
            >
              Look
            </ButtonLink>
          </p>
        ))}
        <div class="folder-work">
          <ProgressBar
            done={totalBytes > 0 ? doneBytes : 1}
            total={totalBytes > 0 ? totalBytes : 1}
            label={`Transfers of ${folder.name}`}
          />
          <p class="muted small num">{work === '' ? 'Nothing is on the way' : work}</p>
        </div>
        <dl class="stats folder-stats">
          <Stat
            label="Files"
            value={formatCount(folder.files)}
            hint={formatPlural(folder.folders, 'folder')}
          />
          <Stat label="Size" value={formatBytes(folder.bytes)} hint="on both sides" />
          <Stat
            label="Left alone"
            value={formatCount(folder.open.reported)}
            hint={folder.open.reported > 0 ? 'with reasons' : 'all takes part'}
          />
          <Stat
            label="OneDrive heard"
            value={<Time at={folder.heardAt} />}
            hint={
              <>
                folder seen <Time at={folder.scannedAt} />
              </>
            }
          />
        </dl>
        <p class="muted small path">
          {MODES[folder.mode]} · {folder.account} · {folder.root}
          {folder.isHere ? '' : ' (on another machine)'}
        </p>
      </div>
    </Card>
  )
}
