/** One folder at a glance: how it stands, what is on the way, what needs somebody. */

import { Badge } from '../../../../web/src/components/badge.tsx'
import { ButtonLink } from '../../../../web/src/components/button.tsx'
import { Card } from '../../../../web/src/components/card.tsx'
import { Icon } from '../../../../web/src/components/icon.tsx'
import { ProgressBar } from '../../../../web/src/components/progress-bar.tsx'
import { Stat } from '../../../../web/src/components/stat.tsx'
import { Time } from '../../../../web/src/components/values.tsx'
import { formatBytes, formatCount, formatPlural } from '../../../../web/src/format.ts'
import type { FolderPairView, TransfersView } from '../api/schemas.ts'
import { FOLDER_PAIR_STATES, folderPairNeeds, MODES, workText } from './folder-pair-state.ts'
import { folderPairLink } from './links.ts'

export function FolderPairCard({ pair, transfers }: { pair: FolderPairView; transfers: TransfersView }) {
  const { text, tone } = FOLDER_PAIR_STATES[pair.state]
  const work = workText(pair, transfers)
  const doneBytes = transfers.upload.doneBytes + transfers.download.doneBytes
  const totalBytes = transfers.upload.totalBytes + transfers.download.totalBytes
  return (
    <Card
      class="drive-card"
      title={pair.name}
      href={folderPairLink(pair.name)}
      tone={tone === 'danger' ? 'danger' : 'neutral'}
      actions={
        <Badge tone={tone} dot>
          {text}
        </Badge>
      }
    >
      <div class="stack">
        <p>{pair.text}</p>
        {folderPairNeeds(pair).map((need) => (
          <p key={need.key} class="drive-need tone-danger">
            <Icon name="alert" />
            <span>{need.text}</span>
            <ButtonLink
              small
              href={
                need.view === 'deletes'
                  ? `${folderPairLink(pair.name)}#deletes`
                  : folderPairLink(pair.name, 'conflicts')
              }
              aria-label={`Look at it: ${need.text} in ${pair.name}`}
            >
              Look
            </ButtonLink>
          </p>
        ))}
        <div class="drive-work">
          <ProgressBar
            done={totalBytes > 0 ? doneBytes : 1}
            total={totalBytes > 0 ? totalBytes : 1}
            label={`Transfers of ${pair.name}`}
          />
          <p class="muted small num">{work === '' ? 'Nothing is on the way' : work}</p>
        </div>
        <dl class="stats drive-stats">
          <Stat label="Files" value={formatCount(pair.files)} hint={formatPlural(pair.folders, 'folder')} />
          <Stat label="Size" value={formatBytes(pair.bytes)} hint="on both sides" />
          <Stat
            label="Left alone"
            value={formatCount(pair.open.reported)}
            hint={pair.open.reported > 0 ? 'with reasons' : 'all takes part'}
          />
          <Stat
            label="OneDrive heard"
            value={<Time at={pair.heardAt} />}
            hint={
              <>
                folder seen <Time at={pair.scannedAt} />
              </>
            }
          />
        </dl>
        <p class="muted small path">
          {MODES[pair.mode]} · {pair.account} · {pair.root}
          {pair.isHere ? '' : ' (on another machine)'}
        </p>
      </div>
    </Card>
  )
}
