/** What is being sent and fetched right now. */
import { z } from 'zod'
import { progressOf } from '../../../app/state-views.ts'
import { parsedJson } from '../../../engine/observe/job-texts.ts'
import type { JobRow } from '../../../ledger/contract.ts'
import type { TransferView } from '../act/transfers.ts'
import { actionPayload } from '../action.ts'
import { folderPairName, folderPairRow } from './inputs.ts'
import type { FilesServices } from './route.ts'
import { defineRoute } from './route.ts'
import { type TransfersView, transfersSchema } from './schemas.ts'
import { TransferRates } from './transfer-rates.ts'

const ITEMS_MAX = 100
const HELD_MAX = 500

const listTransfers = defineRoute(
  {
    ...{ method: 'get', path: '/api/files/transfers', tag: 'files', access: 'read' },
    summary: 'What is being uploaded and downloaded right now',
    query: z.object({ drive: folderPairName.optional().describe('Only of this folder') }),
    errors: [404],
    answer: transfersSchema,
  },
  async ({ query: { drive } }, services) => {
    if (drive !== undefined) await folderPairRow(services, drive)
    return readTransfers(services, { drive, limit: ITEMS_MAX })
  },
)

const ratesBy = new WeakMap<FilesServices['files'], TransferRates>()

export async function readTransfers(
  services: FilesServices,
  { drive, limit }: { drive?: string | undefined; limit: number },
): Promise<TransfersView> {
  const { files, clock } = services
  const rates = ratesBy.get(files) ?? new TransferRates()
  ratesBy.set(files, rates)
  const running = await runningNow(services)
  const paces = rates.measure(
    running.map((one) => ({ key: keyOf(one), doneBytes: one.doneBytes })),
    clock.monotonicMs(),
  )
  const wanted = drive === undefined ? running : running.filter((one) => one.drive === drive)
  const items = wanted
    .toSorted((a, b) => a.startedAtMs - b.startedAtMs)
    .slice(0, limit)
    .map(({ startedAtMs, ...one }) => ({
      ...one,
      startedAt: Math.round(startedAtMs),
      bytesPerSecond: paces.get(keyOf({ ...one, startedAtMs })) ?? null,
    }))
  return { items, upload: sumOf(wanted, 'upload'), download: sumOf(wanted, 'download') }
}

function keyOf({ drive, node, direction }: TransferView): string {
  return JSON.stringify([drive, node, direction])
}

function sumOf(list: readonly TransferView[], direction: TransferView['direction']) {
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
  const { done = 0, total } = progressOf(progress) ?? {}
  return [
    {
      ...{ drive, node, direction, path, doneBytes: done, totalBytes: total ?? bytes },
      startedAtMs: claimed_at ?? created_at,
    },
  ]
}

export const transferRoutes = [listTransfers]
