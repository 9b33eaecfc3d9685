/**
 * An upload in fragments. Where it stands is saved with the job: a restart asks OneDrive how much it has, and goes on
 * from there, as long as the file is the same. Nothing is visible before the last fragment, so before that one both
 * sides are looked at once more.
 *
 *   none ──created, address saved──▶ open ──fragments──▶ all but the last ──looked at both sides──▶ done
 *                                     ▲  │ other bytes are expected: ask, go on from there
 *                                     └──┘
 *                   gone: created anew, from the start          changed, also while it was read: canceled, nothing
 *                                                               was visible
 */
import { z } from 'zod'
import { TidemarkError } from '../../../base/errors.ts'
import {
  FRAGMENT_BYTES_MAX,
  FRAGMENT_STEP_BYTES,
  type FragmentAnswer,
  type UploadProgress,
} from '../../../cloud/onedrive/client.ts'
import type { Ended } from '../action.ts'
import { ContentHash } from '../content-hash.ts'
import { lookInside } from '../local/folder.ts'
import { isSameStat, plainStat } from '../local/stat.ts'
import { isOther } from '../store/remote-tree.ts'
import { isRemoteContentSame, type LocalStat } from '../trees.ts'
import { hashUpTo, lookOpened, piecesOf } from './content.ts'
import { errorCode, FRESH_TRIES, lookAtItem, notGiven, staleWith } from './fresh-look.ts'
import { asObject, rootOf } from './local-side.ts'
import type { Sending as AnySending, OpenSource, Sent, UploadDeps } from './sending.ts'
import { FileChanged } from './transfers.ts'

type Sending = AnySending<OpenSource>

const savedSession = z.object({
  /** A key: whoever shows a checkpoint hides what has this name. */
  uploadUrl: z.string().min(1),
  expiresAtMs: z.number(),
  target: z.string(),
  stat: z.object({
    dev: z.string(),
    ino: z.string(),
    birthNs: z.string(),
    mtimeNs: z.string(),
    ctimeNs: z.string(),
    size: z.number(),
  }),
})

/** The hash is of the bytes before `offset`, of the file as it is in this life: SHA-256 cannot be kept half-way. */
type Session = { url: string; expiresAtMs: number; offset: number; hash: ContentHash }

const SAVE_EVERY_FRAGMENTS = 4
/** Answers that do not bring it on, over the whole upload. */
const TROUBLES_MAX = 5
/** A session that ends this soon is not worth the asking. */
const EXPIRES_SOON_MS = 10_000

export async function sendInFragments(deps: UploadDeps, sending: Sending): Promise<Sent> {
  const chunkBytes = chunkOf(deps)
  let session = (await resumed(sending)) ?? (await begun(sending))
  for (let fragments = 1, troubles = 0; ; fragments++) {
    try {
      const sent = await sendNext(sending, session, chunkBytes)
      if ('item' in sent || 'ended' in sent) return sent
      const isExpected = sent.offset > session.offset
      session = sent
      if (!isExpected && ++troubles > TROUBLES_MAX) throw stuckThere()
      if (fragments % SAVE_EVERY_FRAGMENTS === 0) await save(sending, session)
    } catch (thrown) {
      const code = errorCode(thrown)
      if (code === 'file-changed' || sending.transfer.signal.aborted) await cancel(sending, session)
      if ((code !== 'range' && code !== 'session-gone') || ++troubles > TROUBLES_MAX) throw thrown
      session = (code === 'range' && (await asked(sending, session))) || (await begun(sending))
    }
  }
}

async function sendNext(sending: Sending, session: Session, chunkBytes: number): Promise<Sent | Session> {
  const total = sending.source.look.size
  const length = Math.min(chunkBytes, total - session.offset)
  if (session.offset + length === total) {
    const ended = await lastLook(sending)
    if (ended) {
      // What only waits goes on with the bytes that are there.
      if (ended.end === 'wait') await save(sending, session)
      else await cancel(sending, session)
      return { ended }
    }
  }
  const hash = new ContentHash(session.hash)
  const answer = await sendFragment(sending, session, { length, hash })
  if ('item' in answer) return { item: answer.item, ...hash.digest() }
  if (answer.nextOffset !== session.offset + length) return moved(sending, session, answer)
  return { ...session, ...sessionExpiry(answer), offset: answer.nextOffset, hash }
}

function stuckThere(): TidemarkError {
  const message = 'OneDrive takes the bytes of the upload and does not count them'
  return new TidemarkError(message, { kind: 'transient', code: 'upload-stuck' })
}

function chunkOf({ settings }: UploadDeps): number {
  const steps = Math.floor(Math.min(settings.chunkBytes, FRAGMENT_BYTES_MAX) / FRAGMENT_STEP_BYTES)
  return Math.max(1, steps) * FRAGMENT_STEP_BYTES
}

async function begun(sending: Sending): Promise<Session> {
  const { context, source, target, ifMatch, modifiedMs, signal } = sending
  const { client, driveId } = context.pair
  const how =
    'itemId' in target
      ? { conflict: 'replace' as const, ifMatch }
      : { conflict: 'fail' as const, missingTries: FRESH_TRIES }
  const made = await client.createUploadSession(driveId, target, {
    ...how,
    modifiedMs,
    size: source.look.size,
    signal,
  })
  const session = { ...made, offset: 0, hash: new ContentHash() }
  // Before the first byte: what is sent is found again.
  await save(sending, session)
  return session
}

/** What an earlier try has left; undefined where there is none, or it is not about the same. */
async function resumed(sending: Sending): Promise<Session | undefined> {
  const { job } = sending.context
  const saved = savedSession.safeParse(asObject(job.checkpoint).upload)
  if (!saved.success) return undefined
  const { uploadUrl: url, expiresAtMs, target, stat } = saved.data
  const isSame = target === sessionKey(sending) && isSameStat(stat, sending.source.look)
  const session = { url, expiresAtMs, offset: 0, hash: new ContentHash() }
  if (!isSame) {
    await cancel(sending, session)
    return undefined
  }
  return expiresAtMs > job.clock.now() + EXPIRES_SOON_MS ? asked(sending, session) : undefined
}

/** The same place and the same version that is replaced. */
function sessionKey({ target, ifMatch }: Sending): string {
  return JSON.stringify([target, ifMatch ?? null])
}

async function save(sending: Sending, session: Session): Promise<void> {
  const { job } = sending.context
  const stat: LocalStat = plainStat(sending.source.look)
  const upload: z.infer<typeof savedSession> = {
    uploadUrl: session.url,
    expiresAtMs: session.expiresAtMs,
    target: sessionKey(sending),
    stat,
  }
  await job.save({ ...asObject(job.checkpoint), upload })
}

/** OneDrive knows how much it has. Undefined: the session is gone, or full and refused. */
async function asked(sending: Sending, session: Session): Promise<Session | undefined> {
  const { client } = sending.context.pair
  try {
    const status = await client.uploadStatus(session.url, { signal: sending.signal })
    return await moved(sending, session, status)
  } catch (thrown) {
    const code = errorCode(thrown)
    if (code === 'session-gone' || code === 'damaged-answer') return undefined
    throw thrown
  }
}

/** To where OneDrive stands: the hash follows by reading the file. */
async function moved(sending: Sending, session: Session, status: UploadProgress): Promise<Session> {
  const { job } = sending.context
  const { file, look } = sending.source
  const offset = Math.min(status.nextOffset, look.size)
  const from = session.hash.bytes <= offset ? session.hash : new ContentHash()
  const watched = { signal: sending.signal, progress: () => job.progress() }
  const hash = await hashUpTo(file, from, offset, watched)
  return { ...session, ...sessionExpiry(status), offset, hash }
}

function sessionExpiry({ expiresAtMs }: UploadProgress): { expiresAtMs: number } {
  return { expiresAtMs }
}

/**
 * A file that changes breaks it off, but for what is sent to its last byte: OneDrive may have taken that already, and
 * who saves again would have a conflict with themselves.
 */
async function sendFragment(
  { context, source, transfer, signal }: Sending,
  { url, offset }: Session,
  { length, hash }: { length: number; hash: ContentHash },
): Promise<FragmentAnswer> {
  const { pair, job } = context
  const total = source.look.size
  const broken = new AbortController()
  const breakOff = (): void => broken.abort(signal.reason)
  signal.throwIfAborted()
  transfer.signal.addEventListener('abort', breakOff, { once: true })
  transfer.kept(offset)
  const body = piecesOf(source.file, { offset, length }, (piece, sent) => {
    hash.update(piece)
    if (offset + sent === total) {
      // All of it has been read, and OneDrive does not have it yet: what it gets is the file of one moment, or nothing.
      if (!isSameStat(lookOpened(source.file), source.look)) throw new FileChanged()
      transfer.signal.removeEventListener('abort', breakOff)
    }
    transfer.moved(offset + sent)
    job.progress({ done: offset + sent, total, unit: 'bytes' })
  })
  const until = AbortSignal.any([job.signal, broken.signal])
  try {
    return await pair.client.uploadFragment(url, { offset, total, length, body, signal: until })
  } finally {
    transfer.signal.removeEventListener('abort', breakOff)
  }
}

/** Undefined: both sides are still what they were when it was decided. */
async function lastLook(sending: Sending): Promise<Ended | undefined> {
  const { context, source, target } = sending
  const look = lookInside(rootOf(context.pair), source.names)
  if (!look || !isSameStat(look, source.look)) throw new FileChanged()
  const { base } = context.case
  if (!('itemId' in target) || !base) return undefined
  const now = await lookAtItem(context, target.itemId)
  if (!now) return notGiven(context, [target.itemId])
  const { replaces } = sending
  return (replaces ? !isOther(replaces, now) : isRemoteContentSame(now, base))
    ? undefined
    : staleWith(context, [now], 'it changed in OneDrive meanwhile')
}

/** A session that cannot be canceled ends by itself. */
async function cancel({ context }: Sending, { url }: Session): Promise<void> {
  const { pair, job } = context
  if (job.signal.aborted) return
  try {
    await pair.client.cancelUpload(url, { signal: job.signal })
  } catch (thrown) {
    job.signal.throwIfAborted()
    if (errorCode(thrown) === 'strange-address') throw thrown
  }
}
