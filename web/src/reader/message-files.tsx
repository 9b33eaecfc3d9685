import type { MessageView } from '../../../src/server/mail-api/schemas.ts'
import { messagePath } from '../api.ts'
import { Icon } from '../components/icon.tsx'
import { Bytes } from '../components/values.tsx'
import { formatPlural } from '../format.ts'

/** Attachments; always saved, never opened here. */
export function MessageFiles({ message }: { message: MessageView }) {
  if (message.files.length === 0) return null
  return (
    <div class="mail-files">
      <ul aria-label={formatPlural(message.files.length, 'attachment')}>
        {message.files.map((file) => (
          <li key={file.index}>
            <a
              class="mail-file"
              href={`${messagePath(message.account, message.id)}/attachments/${file.index}`}
              download
              title={`${file.name} (${file.type})`}
            >
              <Icon name="file" />
              <span class="mail-file-name truncate">{file.name || 'without a name'}</span>
              <span class="muted small">
                <Bytes value={file.bytes} />
              </span>
              <Icon name="download" />
            </a>
          </li>
        ))}
      </ul>
    </div>
  )
}
