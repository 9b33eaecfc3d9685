/** What is being sent and fetched: each with how far and how fast. The place stays as large as it was needed before. */
import { useRef } from 'preact/hooks'
import { Icon } from '../../../../web/src/components/icon.tsx'
import { ProgressBar } from '../../../../web/src/components/progress-bar.tsx'
import { formatBytes, formatDuration, formatPlural } from '../../../../web/src/format.ts'
import type { TransferViewOut } from '../api/schemas.ts'

const SHOWN_MAX = 8

export function TransferList({ items }: { items: readonly TransferViewOut[] }) {
  const most = useRef(0)
  const shown = items.slice(0, SHOWN_MAX)
  most.current = Math.max(most.current, shown.length)
  const rest = items.length - shown.length
  return (
    <div class="transfers" style={{ '--slots': most.current }}>
      {shown.length === 0 ? <p class="muted">Nothing is being transferred at the moment.</p> : null}
      <ul>
        {shown.map((transfer) => (
          <li key={`${transfer.folder} ${transfer.node} ${transfer.direction}`}>
            <Transfer transfer={transfer} />
          </li>
        ))}
      </ul>
      {rest > 0 ? <p class="muted small">and {formatPlural(rest, 'file')} more</p> : null}
    </div>
  )
}

function Transfer({ transfer }: { transfer: TransferViewOut }) {
  const { direction, path, doneBytes, totalBytes, bytesPerSecond } = transfer
  const way = direction === 'upload' ? 'Uploading' : 'Downloading'
  const left = totalBytes - doneBytes
  const isMoving = bytesPerSecond !== null && bytesPerSecond > 0
  return (
    <div class="transfer">
      <div class="ends">
        <span class="transfer-name">
          <Icon name={direction} />
          <span class="visually-hidden">{way} </span>
          <span class="truncate" title={path}>
            {path}
          </span>
        </span>
        <span class="muted small num">{isMoving ? `${formatBytes(bytesPerSecond)}/s` : ''}</span>
      </div>
      <ProgressBar done={doneBytes} total={totalBytes > 0 ? totalBytes : null} label={`${way} ${path}`} />
      <div class="ends muted small num">
        <span>
          {formatBytes(doneBytes)} of {formatBytes(totalBytes)}
        </span>
        <span>{isMoving && left > 0 ? `${formatDuration((left / bytesPerSecond) * 1_000)} left` : ''}</span>
      </div>
    </div>
  )
}
