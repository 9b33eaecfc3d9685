/** One folder at a glance: how it stands, what is on the way, what needs somebody. */

import { Badge } from '../../../../web/src/components/badge.tsx'
import { ButtonLink } from '../../../../web/src/components/button.tsx'
import { Card } from '../../../../web/src/components/card.tsx'
import { Icon } from '../../../../web/src/components/icon.tsx'
import { ProgressBar } from '../../../../web/src/components/progress-bar.tsx'
import { Stat } from '../../../../web/src/components/stat.tsx'
import { Time } from '../../../../web/src/components/values.tsx'
import { formatBytes, formatCount, formatPlural } from '../../../../web/src/format.ts'
import type { DriveView, TransfersView } from '../api/schemas.ts'
import { DRIVE_STATES, driveNeeds, MODES, workText } from './drive-state.ts'
import { driveLink } from './links.ts'

export function DriveCard({ drive, transfers }: { drive: DriveView; transfers: TransfersView }) {
  const { text, tone } = DRIVE_STATES[drive.state]
  const work = workText(drive, transfers)
  const doneBytes = transfers.upload.doneBytes + transfers.download.doneBytes
  const totalBytes = transfers.upload.totalBytes + transfers.download.totalBytes
  return (
    <Card
      class="drive-card"
      title={drive.name}
      href={driveLink(drive.name)}
      tone={tone === 'danger' ? 'danger' : 'neutral'}
      actions={
        <Badge tone={tone} dot>
          {text}
        </Badge>
      }
    >
      <div class="stack">
        <p>{drive.text}</p>
        {driveNeeds(drive).map((need) => (
          <p key={need.key} class="drive-need tone-danger">
            <Icon name="alert" />
            <span>{need.text}</span>
            <ButtonLink
              small
              href={
                need.view === 'deletes'
                  ? `${driveLink(drive.name)}#deletes`
                  : driveLink(drive.name, 'conflicts')
              }
              aria-label={`Look at it: ${need.text} in ${drive.name}`}
            >
              Look
            </ButtonLink>
          </p>
        ))}
        <div class="drive-work">
          <ProgressBar
            done={totalBytes > 0 ? doneBytes : 1}
            total={totalBytes > 0 ? totalBytes : 1}
            label={`Transfers of ${drive.name}`}
          />
          <p class="muted small num">{work === '' ? 'Nothing is on the way' : work}</p>
        </div>
        <dl class="stats drive-stats">
          <Stat label="Files" value={formatCount(drive.files)} hint={formatPlural(drive.folders, 'folder')} />
          <Stat label="Size" value={formatBytes(drive.bytes)} hint="on both sides" />
          <Stat
            label="Left alone"
            value={formatCount(drive.open.reported)}
            hint={drive.open.reported > 0 ? 'with reasons' : 'all takes part'}
          />
          <Stat
            label="OneDrive heard"
            value={<Time at={drive.heardAt} />}
            hint={
              <>
                folder seen <Time at={drive.scannedAt} />
              </>
            }
          />
        </dl>
        <p class="muted small path">
          {MODES[drive.mode]} · {drive.account} · {drive.root}
          {drive.isHere ? '' : ' (on another machine)'}
        </p>
      </div>
    </Card>
  )
}
