/**
 * Signals: the first SIGINT or SIGTERM stops the engine gracefully, the second exits at once, SIGHUP reloads the
 * configuration.
 *
 *   running ──INT, TERM──▶ stopping ──INT, TERM──▶ exit(130 | 143)
 *     │  └─HUP: reload        └─HUP: nothing, there is nothing left to configure
 *
 * Exiting at once is safe at any moment: leases run out, or the next start sees that this process is dead.
 */
import type { Clock } from '../base/clock.ts'

/**
 * Ctrl-C under `npm start` arrives twice: the terminal signals the whole group, and npm passes its own on.
 * That is one wish to stop; nobody presses it twice this fast.
 */
export const SAME_SIGNAL_MS = 100

export type StopSignal = 'SIGINT' | 'SIGTERM'

/** As far as `process` is needed here. */
export type SignalSource = {
  on(signal: NodeJS.Signals, fn: () => void): unknown
  off(signal: NodeJS.Signals, fn: () => void): unknown
}

export type SignalHandlers = {
  process: SignalSource
  clock: Clock
  /** Called once. Ends the process by itself when it is done; `exit` is only for the impatient. */
  onStop: (signal: StopSignal) => void | Promise<void>
  onReload: () => void | Promise<void>
  exit: (code: number) => void
  /** A stop or a reload that failed; a failed reload leaves everything as it was. */
  onError: (error: unknown, during: 'stop' | 'reload') => void
}

const EXIT_CODES: Record<StopSignal, number> = { SIGINT: 130, SIGTERM: 143 }

/** Returns how to take the handlers off again. */
export function handleSignals(handlers: SignalHandlers): () => void {
  const { process, clock } = handlers
  let first: { signal: StopSignal; atMs: number } | undefined

  const stop = (signal: StopSignal): void => {
    const nowMs = clock.monotonicMs()
    if (!first) {
      first = { signal, atMs: nowMs }
      guarded(handlers, 'stop', () => handlers.onStop(signal))
    } else if (signal !== first.signal || nowMs - first.atMs >= SAME_SIGNAL_MS) {
      handlers.exit(EXIT_CODES[signal])
    }
  }
  const onInt = (): void => stop('SIGINT')
  const onTerm = (): void => stop('SIGTERM')
  const onHup = (): void => {
    if (!first) guarded(handlers, 'reload', handlers.onReload)
  }

  process.on('SIGINT', onInt)
  process.on('SIGTERM', onTerm)
  process.on('SIGHUP', onHup)
  return () => {
    process.off('SIGINT', onInt)
    process.off('SIGTERM', onTerm)
    process.off('SIGHUP', onHup)
  }
}

function guarded(
  { onError }: SignalHandlers,
  during: 'stop' | 'reload',
  fn: () => void | Promise<void>,
): void {
  // An error in a signal handler would otherwise end the process in the middle of a clean stop.
  new Promise<void>((resolve) => resolve(fn())).catch((error: unknown) => onError(error, during))
}
