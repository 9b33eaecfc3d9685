/**
 * Transfers that run in this process right now: how far they are, for people, and how an upload is stopped whose file
 * was just seen to change. Nothing of it outlives the process.
 */
import { TidemarkError } from '../../../base/errors.ts'
import type { NodeKey } from '../trees.ts'

export type TransferDirection = 'upload' | 'download'

export type TransferInput = {
  drive: string
  node: NodeKey
  /** Of the file that is uploaded; undefined where a change of it does not matter. */
  localId: number | undefined
  direction: TransferDirection
  path: string
  totalBytes: number
  startedAtMs: number
}

export type TransferView = Omit<TransferInput, 'localId'> & { doneBytes: number }

export type Transfer = {
  /** Aborted when the file was seen to change, with `FileChanged` as its reason. */
  signal: AbortSignal
  moved(doneBytes: number): void
  /** So much was there before, and need not be moved again. */
  kept(doneBytes: number): void
  end(): void
}

export type TransferNumbers = Record<
  TransferDirection,
  { count: number; doneBytes: number; totalBytes: number }
>

/** Not a failure: another upload takes its place. */
export class FileChanged extends TidemarkError {
  constructor() {
    super('The file changed while it was uploaded', { kind: 'transient', code: 'file-changed' })
    this.name = 'FileChanged'
  }
}

type Running = TransferView & { localId: number | undefined; controller: AbortController }

export class Transfers {
  readonly #running = new Set<Running>()
  readonly #movedBytes = new Map<string, number>()

  begin(input: TransferInput): Transfer {
    const running: Running = { ...input, doneBytes: 0, controller: new AbortController() }
    this.#running.add(running)
    return {
      signal: running.controller.signal,
      moved: (doneBytes) => {
        const bytes = Math.max(0, doneBytes - running.doneBytes)
        this.#movedBytes.set(input.drive, this.movedBytes(input.drive) + bytes)
        running.doneBytes = doneBytes
      },
      kept: (doneBytes) => {
        running.doneBytes = doneBytes
      },
      end: () => this.#running.delete(running),
    }
  }

  /** By all transfers since the process began: small ones are over before anybody looks. */
  movedBytes(pair: string): number {
    return this.#movedBytes.get(pair) ?? 0
  }

  /** Someone saw that these files changed; returns how many uploads were stopped for it. */
  changed(pair: string, localIds: Iterable<number>): number {
    const ids = new Set(localIds)
    let stopped = 0
    for (const running of this.#running) {
      const { localId, controller } = running
      if (running.drive !== pair || localId === undefined || !ids.has(localId)) continue
      if (controller.signal.aborted) continue
      controller.abort(new FileChanged())
      stopped += 1
    }
    return stopped
  }

  numbers(pair?: string): TransferNumbers {
    const numbers: TransferNumbers = {
      upload: { count: 0, doneBytes: 0, totalBytes: 0 },
      download: { count: 0, doneBytes: 0, totalBytes: 0 },
    }
    for (const running of this.#running) {
      if (pair !== undefined && running.drive !== pair) continue
      const sum = numbers[running.direction]
      sum.count += 1
      sum.doneBytes += running.doneBytes
      sum.totalBytes += running.totalBytes
    }
    return numbers
  }

  list(pair?: string): TransferView[] {
    return [...this.#running]
      .filter((running) => pair === undefined || running.drive === pair)
      .map(({ localId: _, controller: __, ...view }) => view)
  }
}
