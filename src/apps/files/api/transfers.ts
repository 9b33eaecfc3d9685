/** What is being sent and fetched right now. */
import { z } from 'zod'
import { progressView } from '../../../app/state-views.ts'
import { parsedJson } from '../../../engine/observe/job-texts.ts'
import type { JobRow } from '../../../ledger/contract.ts'
import type { TransferView } from '../act/transfers.ts'
import { actionPayload } from '../action.ts'
import { folderName, folderPairRow } from './inputs.ts'
import { type FilesServices, route } from './route.ts'
import { type TransfersView, transfersSchema } from './schemas.ts'

const ITEMS_MAX = 100
const HELD_MAX = 500

const listTransfers = route('GET /api/files/transfers', {
  summary: 'What is being uploaded and downloaded right now',
  query: z.object({ folder: folderName.optional().describe('Only of this folder') }),
  errors: [404],
  answer: transfersSchema,
  handle: async ({ query: { folder } }, services) => {
    if (folder !== undefined) await folderPairRow(services, folder)
    return readTransfers(services, { folder, limit: ITEMS_MAX })
  },
})

const ratesBy = new WeakMap<FilesServices['files'], TransferRates>()

export async function readTransfers(
  services: FilesServices,
  { folder, limit }: { folder?: string | undefined; limit: number },
): Promise<TransfersView> {
  const { files, clock } = services
  const rates = ratesBy.get(files) ?? new TransferRates()
  ratesBy.set(files, rates)
  const running = await runningNow(services)
  const paces = rates.measure(
    running.map((one) => ({ key: transferKey(one), doneBytes: one.doneBytes })),
    clock.monotonicMs(),
  )
  const wanted = folder === undefined ? running : running.filter((one) => one.drive === folder)
  const items = wanted
    .toSorted((a, b) => a.startedAtMs - b.startedAtMs)
    .slice(0, limit)
    .map((one) => {
      const { drive, startedAtMs, ...rest } = one
      const bytesPerSecond = paces.get(transferKey(one)) ?? null
      return { ...rest, folder: drive, startedAt: Math.round(startedAtMs), bytesPerSecond }
    })
  return { items, upload: directionTotal(wanted, 'upload'), download: directionTotal(wanted, 'download') }
}

function transferKey({ drive, node, direction }: TransferView): string {
  return JSON.stringify([drive, node, direction])
}

function directionTotal(list: readonly TransferView[], direction: TransferView['direction']) {
  const way = list.filter((one) => one.direction === direction)
  return {
    count: way.length,
    doneBytes: way.reduce((sum, { doneBytes }) => sum + doneBytes, 0),
    totalBytes: way.reduce((sum, { totalBytes }) => sum + totalBytes, 0),
  }
}

/** A process that runs no jobs itself knows what others run from the ledger: as of some seconds ago. */
async function runningNow({ role, files, ledger }: FilesServices): Promise<TransferView[]> {
  if (role !== 'web') return files.transfers.list()
  return (await ledger.heldJobs(HELD_MAX)).flatMap(heldTransfer)
}

function heldTransfer({ kind, payload, progress, claimed_at, created_at }: JobRow): TransferView[] {
  const direction = kind === 'files.upload' ? 'upload' : kind === 'files.download' ? 'download' : undefined
  const parsed = actionPayload.safeParse(parsedJson(payload))
  if (!direction || !parsed.success) return []
  const { drive, node, path, bytes } = parsed.data
  const { done = 0, total } = progressView(progress) ?? {}
  return [
    {
      drive,
      node,
      direction,
      path,
      doneBytes: done,
      totalBytes: total ?? bytes,
      startedAtMs: claimed_at ?? created_at,
    },
  ]
}

export const transferRoutes = [listTransfers]

/** How fast transfers are, from looks at how far they are. */
/** Looks that are closer than this tell nothing. */
const STEP_MS_MIN = 400
/** Of what was measured before, in a new figure. */
const MEMORY = 0.6

type Seen = { atMs: number; doneBytes: number; bytesPerSecond: number | null }

export class TransferRates {
  #seen = new Map<string, Seen>()

  /** `list` is all that runs: what is not in it is forgotten. */
  measure(
    list: readonly { key: string; doneBytes: number }[],
    atMs: number,
  ): ReadonlyMap<string, number | null> {
    const now = new Map<string, Seen>()
    for (const { key, doneBytes } of list) {
      const last = this.#seen.get(key)
      // One that began anew under the same name begins to be watched anew.
      const isOther = last !== undefined && doneBytes < last.doneBytes
      if (!last || isOther) now.set(key, { atMs, doneBytes, bytesPerSecond: null })
      else if (atMs - last.atMs < STEP_MS_MIN) now.set(key, last)
      else now.set(key, { atMs, doneBytes, bytesPerSecond: paceOf(last, { atMs, doneBytes }) })
    }
    this.#seen = now
    return new Map([...now].map(([key, { bytesPerSecond }]) => [key, bytesPerSecond]))
  }
}

function paceOf(last: Seen, now: { atMs: number; doneBytes: number }): number {
  const pace = ((now.doneBytes - last.doneBytes) * 1_000) / (now.atMs - last.atMs)
  if (last.bytesPerSecond === null) return pace
  return last.bytesPerSecond * MEMORY + pace * (1 - MEMORY)
}
