/**
 * Alerts as notifications of the desktop, where there is one: by notify-send on Linux, by osascript on macOS. Whether
 * there is one is found out once, from the surroundings of the process. A server, a process of another user and one that
 * was started over SSH have none, and nothing is tried. Nothing goes through a shell.
 */
import { execFile } from 'node:child_process'
import { accessSync, constants } from 'node:fs'
import { join } from 'node:path'
import { TidemarkError } from '../base/errors.ts'
import type { Environment } from '../config/location.ts'
import type { AlertSink, SentAlert } from '../engine/observe/alert-delivery.ts'

const TEXT_CHARS_MAX = 300
const TITLES: Record<SentAlert['severity'], string> = {
  warning: 'Tidemark: something to look at',
  critical: 'Tidemark needs you',
}

export type DesktopInput = {
  env: Environment
  platform?: NodeJS.Platform
  uid?: number
  /** Whether there is such a program. */
  isThere?: (path: string) => boolean
  run?: (file: string, args: readonly string[], signal: AbortSignal) => Promise<void>
}

type Notifier = {
  file: string
  args: (title: string, text: string, severity: SentAlert['severity']) => string[]
}

/** One, or none where no desktop is. */
export function desktopSinks(input: DesktopInput): AlertSink[] {
  const notifier = notifierFor(input)
  if (!notifier) return []
  const { run = runProgram } = input
  return [
    {
      name: 'the desktop',
      async send({ severity, text }, signal) {
        try {
          await run(notifier.file, notifier.args(TITLES[severity], plainText(text), severity), signal)
        } catch (cause) {
          throw new TidemarkError('the desktop took no notification', { kind: 'permanent', cause })
        }
      },
    },
  ]
}

export function notifierFor(input: DesktopInput): Notifier | undefined {
  const { env, platform = process.platform, uid = process.getuid?.() ?? -1, isThere = isExecutable } = input
  const isRemote = Boolean(env.SSH_CONNECTION || env.SSH_TTY || env.SSH_CLIENT)
  if (uid === 0 || isRemote) return undefined
  if (platform === 'darwin') return isThere(OSASCRIPT.file) ? OSASCRIPT : undefined
  // A session bus alone is no desktop: servers have one for every user who is signed in.
  if (platform !== 'linux' || !(env.WAYLAND_DISPLAY || env.DISPLAY)) return undefined
  const folders = (env.PATH ?? '').split(':').filter((folder) => folder.startsWith('/'))
  const file = folders.map((folder) => join(folder, 'notify-send')).find(isThere)
  return file === undefined ? undefined : { file, args: notifySendArgs }
}

/** What follows `--` is text, whatever it begins with; desktops take some markup in it, so that is escaped. */
const notifySendArgs: Notifier['args'] = (title, text, severity) => [
  '--app-name=Tidemark',
  `--urgency=${severity === 'critical' ? 'critical' : 'normal'}`,
  '--',
  title,
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;'),
]

/** The script is always the same; what it shows are its arguments. */
const OSASCRIPT: Notifier = {
  file: '/usr/bin/osascript',
  args: (title, text) => [
    ...['-e', 'on run argv'],
    ...['-e', 'display notification (item 2 of argv) with title (item 1 of argv)'],
    ...['-e', 'end run'],
    title,
    text,
  ],
}

/** Without characters that steer something, and no longer than a notification shows. */
function plainText(text: string): string {
  const plain = text.replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu, ' ').trim()
  const characters = [...plain]
  return characters.length <= TEXT_CHARS_MAX ? plain : `${characters.slice(0, TEXT_CHARS_MAX - 1).join('')}…`
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false // not there, or not for us: there is another way, or none
  }
}

function runProgram(file: string, args: readonly string[], signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    execFile(file, [...args], { signal }, (error) => (error ? reject(error) : resolve()))
  })
}
