/** Where a message lies, and what proves that it is whole. */
import type { ComponentChildren } from 'preact'
import { CopyButton } from '../../../../../web/src/components/copy-button.tsx'
import { Icon } from '../../../../../web/src/components/icon.tsx'
import { Bytes, Time } from '../../../../../web/src/components/values.tsx'
import { DownloadButton } from '../../../../../web/src/ticket.tsx'
import type { MessageView } from '../../api/schemas.ts'
import { messagePath } from '../api.ts'

export function MessageProof({ message }: { message: MessageView }) {
  return (
    <details class="mail-proof">
      <summary>Details and proof</summary>
      <dl class="facts">
        <Fact name="SHA-256">
          <code class="fact-long">{message.sha256}</code>{' '}
          <CopyButton text={message.sha256} label="the hash" />
        </Fact>
        <Fact name="Kept in">
          <code class="fact-long">{message.shard}</code>
        </Fact>
        <Fact name="Comes from">{message.source === 'gmail' ? 'Gmail' : 'an imported file'}</Fact>
        <Fact name="Size">
          <Bytes value={message.bytes} />
        </Fact>
        <Fact name="Arrived">
          <Time at={message.internalMs} show="full" />
        </Fact>
        <Fact name="Date in its header">
          <Time at={message.headerMs} show="full" />
        </Fact>
        <Fact name="Id">
          <code class="fact-long">{message.id}</code>
        </Fact>
        {message.messageId ? (
          <Fact name="Message-ID">
            <code class="fact-long">{message.messageId}</code>
          </Fact>
        ) : null}
        {message.problems.length > 0 ? (
          <Fact name="Not as it should be">
            <ul>
              {message.problems.map((problem) => (
                <li key={problem}>{problem}</li>
              ))}
            </ul>
          </Fact>
        ) : null}
      </dl>
      <p class="muted small">
        The original is kept byte for byte; its hash is checked whenever it is read. The raw file opens in any
        mail program.
      </p>
      <DownloadButton
        class="button button-plain button-small"
        path={`${messagePath(message.account, message.id)}/raw`}
      >
        <Icon name="download" />
        Download the original (.eml)
      </DownloadButton>
    </details>
  )
}

function Fact({ name, children }: { name: string; children: ComponentChildren }) {
  return (
    <div class="fact">
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  )
}
