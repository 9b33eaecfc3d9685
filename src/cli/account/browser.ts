/** Shows a person where to sign in, and opens a browser there where that is wanted. */
import { spawn } from 'node:child_process'
import { formatDuration } from '../../base/format.ts'
import type { Output } from '../output/output.ts'

export function showUrl(
  output: Output,
  { url, open, waitMs }: { url: string; open: boolean; waitMs: number | undefined },
): void {
  output.note('Open this address in a browser and sign in:')
  output.note(url)
  if (waitMs !== undefined) sayWaiting(output, waitMs)
  if (open) openBrowser(output, url)
}

export function sayWaiting(output: Output, waitMs: number): void {
  output.note(`Waiting for the sign-in, up to ${formatDuration(waitMs)}…`)
}

export function openBrowser(output: Output, url: string): void {
  const [program, args] =
    process.platform === 'darwin'
      ? ['open', [url]]
      : process.platform === 'win32'
        ? ['rundll32', ['url.dll,FileProtocolHandler', url]]
        : ['xdg-open', [url]]
  const failed = (): void => output.note('The browser could not be opened: open the address yourself.')
  const child = spawn(program as string, args as string[], { stdio: 'ignore', detached: true })
  child.once('error', failed)
  child.once('exit', (code) => code !== 0 && failed())
  child.unref()
}
