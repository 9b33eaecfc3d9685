/**
 * Brings the content of a local file to OneDrive: small ones in one call, others through a session (see
 * upload-session.ts). A new file never replaces anything: OneDrive refuses a name that is taken. A version replaces
 * exactly the one that it was decided on (If-Match).
 *
 * Times: a call with the content cannot say when the file was changed. On Personal drives that is said in a second
 * call. On Business drives that second call would make another version of the file, so there all files but empty ones
 * go through a session, which takes the time along.
 */

import { TidemarkError } from '../../../base/errors.ts'
import { type DriveItem, PUT_BYTES_MAX } from '../../../cloud/onedrive/client.ts'
import type { Tx } from '../../../ledger/contract.ts'
import type { ActionContext, Ended, VerbRun } from '../action.ts'
import { toRow } from '../delta.ts'
import type { FolderPair } from '../folder-pair.ts'
import { lookInside } from '../local/folder.ts'
import { readWhole } from '../local/hash.ts'
import { isPast } from '../local/stamp.ts'
import { plainStat } from '../local/stat.ts'
import { localRow, setLocalHash } from '../store/local-tree.ts'
import {
  contentSameness,
  type Digests,
  isAgreedContent,
  type LocalRow,
  type RemoteRow,
  wholeMs,
} from '../trees.ts'
import { endAgreed } from './agreed.ts'
import { hashOpened, isForbidden } from './content.ts'
import {
  errorCode,
  FRESH_TRIES,
  folderNotGiven,
  isAsKnown,
  lookAtItem,
  lookAtName,
  notGiven,
  refusedAgain,
  staleWith,
} from './fresh-look.ts'
import {
  goneHere,
  localNames,
  lookAsSeen,
  openAsSeen,
  otherHere,
  recentRootOf,
  rootOf,
  unreadableHere,
} from './local-side.ts'
import type { OpenSource, Sending, UploadDeps, WholeSource } from './sending.ts'
import { FileChanged, type Transfer } from './transfers.ts'
import { isDoubtful, type SentRow, sentAgain } from './upload-doubt.ts'
import { sendInFragments } from './upload-session.ts'

/** OneDrive keeps its own time where it is as good: calls cost more than a second or two are worth. */
const TIME_OFF_MS_MAX = 2_000
/** Through a thread, 10,000 small files were no faster, and took 100 MB more memory. */
const HERE_BYTES_MAX = 64 * 1024
const TIME_MS_MAX = Date.UTC(9999, 11, 31)

export function uploadRun(deps: UploadDeps): VerbRun {
  return async (context) => {
    const { pair, job, node } = context
    const local = context.case.local!
    const target = uploadTarget(context)
    if (!target) return { end: 'stale', because: 'its folder is not in OneDrive' }
    const source = isSentWhole(context) ? await readAsSeen(deps, context) : await openedAsSeen(deps, context)
    if ('ended' in source) return source.ended
    const transfer = deps.transfers.begin({
      drive: pair.name,
      node,
      localId: local.id,
      direction: 'upload',
      path: job.payload.path,
      totalBytes: local.size,
      startedAtMs: job.clock.now(),
    })
    const sending: Sending = {
      context,
      source,
      ...target,
      modifiedMs: modifiedMsOf(local),
      transfer,
      signal: AbortSignal.any([job.signal, transfer.signal]),
    }
    try {
      return await send(deps, sending)
    } catch (thrown) {
      if (job.signal.aborted || !isChange(thrown, transfer)) throw thrown
      const look = lookInside(rootOf(pair), source.names)
      return look ? otherHere(context, local, look) : goneHere(context)
    } finally {
      transfer.end()
      if ('file' in source) await source.file.close()
    }
  }
}

function isSentWhole({ case: { local }, pair }: ActionContext): boolean {
  const { size } = local!
  return size === 0 || (size <= PUT_BYTES_MAX && !pair.isBusiness)
}

async function openedAsSeen(
  { disk }: UploadDeps,
  context: ActionContext,
): Promise<OpenSource | { ended: Ended }> {
  const local = context.case.local!
  const root = rootOf(context.pair)
  const opened = await openAsSeen(context, root, local)
  if ('ended' in opened) return opened
  try {
    const { look, names } = opened
    if (!isPast(root, look)) await disk.pass({ root, names }, plainStat(look), context.job.signal)
    return { ...opened, local }
  } catch (thrown) {
    await opened.file.close()
    throw thrown
  }
}

/** What is read is the very file that was seen, whatever leads to it by now; where it is not, that is looked into. */
async function readAsSeen(
  { disk }: UploadDeps,
  context: ActionContext,
): Promise<WholeSource | { ended: Ended }> {
  const { pair, job } = context
  const local = context.case.local!
  const root = recentRootOf(pair, job.clock)
  const names = await localNames(context, root, local, { isRead: true })
  if (!names) return { ended: await goneHere(context, 'where it is here is not known') }
  let failure: unknown
  try {
    const [place, stat] = [{ root, names }, plainStat(local)]
    const isReadHere = local.size <= HERE_BYTES_MAX && isPast(root, stat)
    const read = isReadHere ? readWhole(place, stat) : await disk.read(place, stat, job.signal)
    if (read.outcome === 'done') return wholeOr(context, { names, local, look: local, ...read })
  } catch (thrown) {
    failure = thrown
  }
  const seen = await lookAsSeen(context, rootOf(pair), local)
  if ('ended' in seen) return seen
  if (isForbidden(failure)) return { ended: unreadableHere(context, local, 'it may not be read') }
  throw failure ?? new FileChanged()
}

function isChange(thrown: unknown, { signal }: Transfer): boolean {
  return signal.aborted || thrown instanceof FileChanged || errorCode(thrown) === 'file-changed'
}

function uploadTarget({
  case: { base, local, remote, localParentId },
}: ActionContext): Pick<Sending, 'target' | 'ifMatch'> | undefined {
  if (base && remote)
    return { target: { itemId: remote.itemId }, ifMatch: remote.eTag ?? remote.cTag ?? undefined }
  if (localParentId === undefined) return undefined
  return { target: { parentId: localParentId, name: local!.name.normalize('NFC') }, ifMatch: undefined }
}

function modifiedMsOf({ mtimeNs }: LocalRow): number | undefined {
  const ms = wholeMs(mtimeNs)
  return ms > 0 && ms < TIME_MS_MAX ? ms : undefined
}

function wholeOr({ pair }: ActionContext, read: WholeSource): WholeSource | { ended: Ended } {
  const { local, look, hash, sha256 } = read
  if (local.hash === null || isAgreedContent(read, local)) return read
  const write = (tx: Tx): Promise<unknown> =>
    setLocalHash(tx, pair.name, { id: local.id, stat: plainStat(look), hash, sha256 })
  return { ended: { end: 'stale', because: 'its content is another one than it was', write } }
}

async function send(deps: UploadDeps, sending: Sending): Promise<Ended> {
  try {
    const first = await sendOnce(deps, sending)
    const sent =
      'row' in first && isDoubtful(sending, first)
        ? await sentAgain(sending, first, (again) => sendOnce(deps, again))
        : first
    if ('ended' in sent) return sent.ended
    const row = isWhole(sending) ? await withTime(sending, sent.row) : sent.row
    return uploaded(sending, row, sent)
  } catch (thrown) {
    return await refused(sending, thrown)
  }
}

async function sendOnce(deps: UploadDeps, sending: Sending): Promise<SentRow | { ended: Ended }> {
  if (isWhole(sending)) {
    const { hash, sha256 } = sending.source
    return { row: await sendWhole(sending), hash, sha256 }
  }
  const sent = await sendInFragments(deps, sending as Sending<OpenSource>)
  if ('ended' in sent) return sent
  const { item, hash, sha256 } = sent
  return { row: uploadedRow(item, sending.context.pair), hash, sha256 }
}

function isWhole(sending: Sending): sending is Sending<WholeSource> {
  return 'bytes' in sending.source
}

async function sendWhole(sending: Sending<WholeSource>): Promise<RemoteRow> {
  const { context, source, target, ifMatch, replaces, transfer } = sending
  const { pair, job } = context
  // Not broken off where the file changes: OneDrive may have taken it already, and who saves again would have a
  // conflict with themselves. The change is the next upload.
  const { signal } = job
  const { bytes } = source
  // What was just made may not be found for a moment.
  const fresh = 'itemId' in target && !replaces ? {} : { missingTries: FRESH_TRIES }
  const how = { ...('itemId' in target ? { ifMatch } : { conflict: 'fail' as const }), ...fresh }
  const item = await pair.client.putContent(pair.driveId, target, bytes, { ...how, signal })
  transfer.moved(bytes.length)
  job.progress({ done: bytes.length, total: bytes.length, unit: 'bytes' })
  return uploadedRow(item, pair)
}

function uploadedRow(item: DriveItem, pair: FolderPair): RemoteRow {
  const row = toRow(item, pair)
  if (!row) throw damaged('OneDrive does not say where the upload is', 'damaged-answer')
  return row
}

/** Only of the very version that was just sent: another one that came since has a time of its own. */
async function withTime({ context, modifiedMs }: Sending, row: RemoteRow): Promise<RemoteRow> {
  const { pair, job } = context
  const offMs = Math.abs((row.modifiedMs ?? 0) - (modifiedMs ?? 0))
  if (pair.isBusiness || modifiedMs === undefined || row.eTag === null || offMs <= TIME_OFF_MS_MAX) return row
  try {
    const match = { ifMatch: row.eTag, signal: job.signal, missingTries: FRESH_TRIES }
    const item = await pair.client.update(pair.driveId, row.itemId, { modifiedMs }, match)
    return toRow(item, pair) ?? row
  } catch (thrown) {
    const code = errorCode(thrown)
    if (code === 'precondition-failed' || code === 'not-found') return row
    throw thrown
  }
}

/** What OneDrive says counts: some drives rewrite documents, and sending them again would never end. */
function uploaded({ context, source }: Sending, remote: RemoteRow, { hash, sha256 }: Digests): Ended {
  const { pair, node, version } = context
  const { local, look } = source
  const isOther = remote.hash !== null && remote.hash !== hash
  return {
    end: 'done',
    ...(isOther ? { note: 'OneDrive has rewritten it' } : {}),
    write: async (tx) => {
      const now = await localRow(tx, pair.name, local.id)
      return endAgreed(tx, context, {
        node,
        version,
        remote,
        type: 'file',
        stat: plainStat(look),
        hash,
        sha256,
        local: now ? { id: now.id } : { parentId: local.parentId! },
        localName: now?.name ?? local.name,
        known: now,
      })
    },
  }
}

function damaged(message: string, code: string): TidemarkError {
  return new TidemarkError(message, { kind: 'transient', code })
}

/** OneDrive has something else than was expected; or it has this very upload, from a try that was interrupted. */
async function refused(sending: Sending, thrown: unknown): Promise<Ended> {
  const { context, target } = sending
  const code = errorCode(thrown)
  const isRefusal = code === 'exists' || code === 'precondition-failed' || code === 'not-found'
  if (!isRefusal || context.job.signal.aborted) throw thrown
  if ('itemId' in target) {
    const now = await lookAtItem(context, target.itemId)
    const own = now && (await ownDigests(sending, now))
    if (now && own) return adopted(sending, now, own)
    if (!now) return notGiven(context, [target.itemId])
    if (isAsKnown(now, context.case.remote)) throw refusedAgain(thrown)
    return staleWith(context, [now], 'it changed in OneDrive meanwhile')
  }
  if (code === 'not-found') {
    const ended = await folderNotGiven(context, target.parentId)
    if (!ended) throw refusedAgain(thrown)
    return ended
  }
  const now = await lookAtName(context, target)
  if (!now) return { end: 'wait', because: 'OneDrive says that its name is taken', afterMs: NAME_WAIT_MS }
  const own = await ownDigests(sending, now)
  if (own) return adopted(sending, now, own)
  return staleWith(context, [now], 'something else has its name in OneDrive')
}

const NAME_WAIT_MS = 5_000

/** The hashes of what was sent, where OneDrive has that, and it is nobody else's other side. */
async function ownDigests({ context, source }: Sending, now: RemoteRow): Promise<Digests | undefined> {
  const { pair, store, job } = context
  const { local, look } = source
  // Where the version that it replaces has the same hash, nobody can say which one this is.
  const isTelling = now.hash !== null && now.hash !== context.case.base?.hash
  if (now.type !== 'file' || !isTelling || now.size !== look.size) return undefined
  const other = await store.localOfItem(pair.name, now.itemId)
  if (other && other.id !== local.id) return undefined
  const own = 'hash' in source ? source : await hashOpened(source.file, look, job)
  // Where that is only likely, both are one node from now on, and are compared as that.
  const isOwn = own && contentSameness({ ...look, hash: own.hash }, now) === 'same'
  return isOwn ? { hash: own.hash, sha256: own.sha256 } : undefined
}

async function adopted(sending: Sending, now: RemoteRow, own: Digests): Promise<Ended> {
  return uploaded(sending, await withTime(sending, now), own)
}
