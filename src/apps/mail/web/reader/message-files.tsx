import { Icon } from '../../../../../web/src/components/icon.tsx'
import { Bytes } from '../../../../../web/src/components/values.tsx'
import { formatPlural } from '../../../../../web/src/format.ts'
import { DownloadButton } from '../../../../../web/src/ticket.tsx'
import type { MessageView } from '../../api/schemas.ts'
import { messagePath } from '../api.ts'

/** Attachments; always saved, never opened here. */
export function MessageFiles({ message }: { message: MessageView }) {
  if (message.files.length === 0) return null
  return (
    <div class="mail-files">
      <ul aria-label={formatPlural(message.files.length, 'attachment')}>
        {message.files.map((file) => (
          <li key={file.index}>
            <DownloadButton
              class="mail-file"
              path={`${messagePath(message.account, message.id)}/attachments/${file.index}`}
              title={`${file.name} (${file.type})`}
            >
              <Icon name="file" />
              <span class="mail-file-name truncate">{file.name || 'without a name'}</span>
              <span class="muted small">
                <Bytes value={file.bytes} />
              </span>
              <Icon name="download" />
            </DownloadButton>
          </li>
        ))}
      </ul>
    </div>
  )
}
