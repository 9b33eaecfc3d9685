import { useState } from 'preact/hooks'
import { Button } from './button.tsx'
import { showToast } from './toast-store.ts'

const SHOWN_MS = 2_000

/** `label` says what is copied: "the message's id". */
export function CopyButton({ text, label }: { text: string; label: string }) {
  const [isCopied, setCopied] = useState(false)
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(text)
      setCopied(true)
      setTimeout(() => setCopied(false), SHOWN_MS)
    } catch {
      // Without a secure connection browsers have no clipboard for pages.
      showToast(`Could not copy ${label}: the browser does not allow it. Select the text instead.`, {
        tone: 'warn',
      })
    }
  }
  return (
    <Button kind="quiet" small icon={isCopied ? 'check' : 'copy'} aria-label={`Copy ${label}`} onClick={copy}>
      {isCopied ? 'Copied' : 'Copy'}
    </Button>
  )
}

/** What can only be done on the command line: as it is typed, and to be copied. */
export function Command({ text }: { text: string }) {
  return (
    <span class="command">
      <code>{text}</code>
      <CopyButton text={text} label="the command" />
    </span>
  )
}
