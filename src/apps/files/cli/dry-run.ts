/** `tidemark files sync --dry-run`: prints what a sync would do. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { CliContext } from '../../../app/command.ts'
import { systemClock } from '../../../base/clock.ts'
import { TidemarkError, UsageError } from '../../../base/errors.ts'
import { formatBytes, formatCount } from '../../../base/format.ts'
import { createHttpExchange, type HttpExchange } from '../../../base/http-exchange.ts'
import { plural } from '../../../base/wording.ts'
import { openLedger } from '../../../ledger/open.ts'
import { ROW_TEXTS } from '../decide.ts'
import { type DryRun, type DryStep, dryRun } from '../dry-run.ts'
import { createFilter } from '../filter.ts'
import { type FolderPair, SERVICE, streamOf } from '../folder-pair.ts'
import { machineId } from '../index.ts'
import { DiskThreads } from '../local/threads.ts'
import type { FolderPairDraft } from '../new-folder.ts'
import { openOneDriveClient, readIgnoreFile } from '../open-folder-pairs.ts'
import { checkTop, isShareGone } from '../shared-folder.ts'
import type { FolderPairRow } from '../store/contract.ts'
import type { NewFolderPair } from '../store/file-store.ts'
import type { OpenedFiles } from './context.ts'
import { heldText } from './held-deletes.ts'
import { chosenSettings, type FilesSyncOptions, noteMerge } from './sync.ts'

export type DryInput = {
  rows: readonly FolderPairRow[]
  draft: FolderPairDraft | undefined
  options: FilesSyncOptions
  stop: AbortSignal
}

const THREADS_MAX = 4
const EXAMPLES_MAX = 10

export async function dryRunFolders(
  context: CliContext,
  opened: OpenedFiles,
  { rows, draft, options, stop }: DryInput,
): Promise<void> {
  const threads = Math.min(THREADS_MAX, opened.files.settings.parallelCheckers)
  const disk = new DiskThreads({ threads })
  const exchange = createHttpExchange()
  try {
    const wanted: { pair: FolderPair; draft?: NewFolderPair }[] = []
    for (const { name } of rows) wanted.push({ pair: await chosenFor(opened, name, options) })
    if (draft) {
      noteMerge(context, draft)
      const made = await drafted(opened, draft, exchange)
      await checkTop(made.pair, stop).catch(refuseUnredeemed)
      wanted.push(made)
    }
    for (const one of wanted) {
      print(context, await inScratch(opened, { ...one, disk, signal: stop }), one.pair.root)
    }
  } catch (thrown) {
    if (!stop.aborted) throw thrown
    throw new TidemarkError('The dry run was stopped. Nothing was changed.', {
      kind: 'transient',
      cause: thrown,
    })
  } finally {
    exchange.close()
    await disk.stop()
  }
}

/** As if what was chosen with flags held already. */
async function chosenFor(
  { files }: OpenedFiles,
  name: string,
  options: FilesSyncOptions,
): Promise<FolderPair> {
  const pair = await files.pairs.get(name)
  const settings = chosenSettings(pair.settings, options)
  if (JSON.stringify(settings.filter) !== JSON.stringify(pair.settings.filter)) {
    throw new UsageError('A dry run of other things than take part is possible for new folders only.', {
      hint: 'Leave out --skip, --only and the like; with tidemark files set nothing is deleted on either side.',
    })
  }
  return { ...pair, settings }
}

/** To look at what a link leads to, it must be redeemed, which holds for good. */
function refuseUnredeemed(thrown: unknown): never {
  if (!isShareGone(thrown)) throw thrown
  throw new UsageError('What this link leads to cannot be looked at before the link is redeemed.', {
    code: 'link-unredeemed',
    hint: 'Open the link in a browser with this account, or leave --dry-run out: nothing was changed.',
    cause: thrown,
  })
}

async function drafted(
  { accounts, vault, files }: OpenedFiles,
  draft: FolderPairDraft,
  exchange: HttpExchange,
): Promise<{ pair: FolderPair; draft: NewFolderPair }> {
  const account = await accounts.find(SERVICE, draft.account)
  if (!account) throw new TidemarkError('The account is gone.', { kind: 'auth' })
  const { name, driveId, driveType, rootItemId, sharedBy, root, settings } = draft
  const same = { name, account: account.name, driveId, rootItemId, root, markerId: 'none' }
  return {
    draft: { ...same, sharedBy, driveType, machine: machineId(), settings: JSON.stringify(settings) },
    pair: {
      ...same,
      sharedBy: sharedBy ?? undefined,
      settings,
      stream: streamOf(name),
      isBusiness: driveType !== 'personal',
      filter: createFilter(settings.filter, readIgnoreFile(root)),
      client: openOneDriveClient(
        {
          accounts,
          vault,
          settings: files.settings,
          exchange,
          clock: systemClock,
          fetch: globalThis.fetch,
          limits: () => undefined,
        },
        account,
      ),
    },
  }
}

async function inScratch(
  { ledger, files }: OpenedFiles,
  input: { pair: FolderPair; draft?: NewFolderPair; disk: DiskThreads; signal: AbortSignal },
): Promise<DryRun> {
  const folder = mkdtempSync(join(tmpdir(), 'tidemark-dry-run-'))
  try {
    const scratch = await openLedger(`sqlite:${join(folder, 'ledger.db')}`)
    try {
      return await dryRun({
        ...input,
        from: ledger,
        scratch,
        settings: files.settings,
        clock: systemClock,
      })
    } finally {
      await scratch.close()
    }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

const VERB_TEXTS: Record<DryStep['verb'], string> = {
  upload: 'upload',
  download: 'download',
  'mkdir-remote': 'make the folder in OneDrive',
  'mkdir-local': 'make the folder here',
  'move-remote': 'move in OneDrive',
  'move-local': 'move here',
  'delete-remote': 'delete in OneDrive',
  'delete-local': 'delete here',
  conflict: 'conflict',
  check: 'compare',
}

function print({ output }: CliContext, found: DryRun, root: string): void {
  const { folder, steps, waiting, left, heldDeletes: held } = found
  const transfers = (verb: DryStep['verb']) => {
    const some = steps.filter((step) => step.verb === verb)
    return { count: some.length, bytes: some.reduce((sum, { bytes }) => sum + bytes, 0) }
  }
  const [up, down] = [transfers('upload'), transfers('download')]
  if (output.json) {
    const told = steps.map((step) => ({ ...step, because: ROW_TEXTS[step.row] ?? step.row }))
    output.value({ type: 'plan', root, ...found, steps: told, uploads: up, downloads: down })
    return
  }
  output.listing({
    columns: [
      { title: 'what', value: ({ verb }) => VERB_TEXTS[verb] },
      { title: 'path', value: ({ path }) => path },
      { title: 'size', value: ({ bytes }) => (bytes > 0 ? formatBytes(bytes) : ''), align: 'right' },
      { title: 'because', value: ({ row }) => ROW_TEXTS[row] ?? row },
      { title: 'row', value: ({ row }) => row },
    ],
    rows: steps,
  })
  for (const { path, because } of waiting) output.line(`later: ${path}: ${because}`)
  for (const { path, because } of left) output.line(`left alone: ${path}: ${because}`)
  if (held) {
    output.line(
      `${heldText(held)} would wait for your yes: ${formatCount(held.remote)} in OneDrive, ${formatCount(held.local)} here, such as`,
    )
    for (const path of found.held.slice(0, EXAMPLES_MAX)) output.line(`  ${path}`)
  }
  const others = steps.length - up.count - down.count
  const parts = [
    ...(up.count > 0 ? [`upload ${formatCount(up.count)} (${formatBytes(up.bytes)})`] : []),
    ...(down.count > 0 ? [`download ${formatCount(down.count)} (${formatBytes(down.bytes)})`] : []),
    ...(others > 0 ? [`do ${formatCount(others)} other ${plural(others, 'thing')}`] : []),
  ]
  const would = steps.length === 0 ? 'nothing is to be done' : `would ${parts.join(', ')}`
  output.line(`${folder}: ${would}. Nothing was changed.`)
}
