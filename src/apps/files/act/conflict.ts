/**
 * Both sides changed, each in its own way. What is done about it is the policy of the folder pair, or what someone has decided;
 * in every case both versions are kept somewhere:
 *
 *   keep-both    the local one gets another name, and goes on as a new file
 *   keep-local   OneDrive's version is fetched into the local trash; then the local one is an edit of it
 *   keep-remote  OneDrive's version is an edit of the local one, whose file goes to the trash when it is replaced
 *   manual       nothing, until someone has decided
 *
 * Where a local thing only wants a name that OneDrive has given to another one, it gets another name, and keeps its
 * item; two files with the same content become one (namesake.ts).
 */
import { rm } from 'node:fs/promises'
import { z } from 'zod'
import { TidemarkError } from '../../../base/errors.ts'
import type { ActionContext, Ended, VerbRun } from '../action.ts'
import { type ConflictPolicy, TEMPORARY_NAME, UPLOADS_ONLY_CONFLICT } from '../decide.ts'
import { isNoFolder, lookInside } from '../local/folder.ts'
import { moveInside } from '../local/move.ts'
import type { Root } from '../local/root.ts'
import { isSameThing, plainStat } from '../local/stat.ts'
import { putInTrash } from '../local/trash.ts'
import { conflictNameOf } from '../names.ts'
import {
  type Decided,
  decidedState,
  endKeptLocal,
  endKeptRemote,
  endOpenConflict,
} from '../store/conflicts.ts'
import type { ConflictRow } from '../store/contract.ts'
import { endSetAside } from '../store/ends.ts'
import { setLocalHash } from '../store/local-tree.ts'
import { isOther } from '../store/remote-tree.ts'
import type { Digests, LocalRow, LocalStat, RemoteRow } from '../trees.ts'
import { endAgreed } from './agreed.ts'
import { hashInside } from './content.ts'
import { lookAtItem, notGiven, staleWith } from './fresh-look.ts'
import {
  asObject,
  goneHere,
  localNames,
  lookAsSeen,
  otherHere,
  rootOf,
  unreadableHere,
} from './local-side.ts'
import { type NamesakeDeps, yieldLeftover, yieldName } from './namesake.ts'
import { type Fetched, fetchContent } from './partial.ts'

export type ConflictDeps = NamesakeDeps

/** The two versions, and all that is known of them. */
type Clash = {
  root: Root
  names: string[]
  local: LocalRow & Digests
  remote: RemoteRow
  kind: ConflictRow['kind']
  /** OneDrive's version, where it had to be fetched. */
  fetched: Fetched | undefined
}

const COPIES_MAX = 100
const WAITS_FOR_DECISION = 'changed on both sides: decide with tidemark files resolve'

export function conflictRun(deps: ConflictDeps): VerbRun {
  return async (context) => {
    const { decision } = context
    const root = rootOf(context.pair)
    const begun = await asideAlready(context, root)
    if (begun) return begun
    if (decision.do !== 'conflict') {
      const ended = await yieldName(deps, context, root)
      return ended ?? setAside(context, root, { kind: 'create-create', isDetached: false })
    }
    if (decision.row === TEMPORARY_NAME) {
      const { remote } = context.case
      // One that is alive in OneDrive is nobody's leftover: it only gets a better name, on both sides.
      const isAlive = remote !== undefined && !remote.isDeleted
      const ended = isAlive ? undefined : await yieldLeftover(deps, context, root)
      return ended ?? setAside(context, root, { kind: decision.conflict, isDetached: false })
    }
    const clash = await readClash(deps, context, root, decision.conflict)
    if ('ended' in clash) return clash.ended
    // They were compared, and differ after all.
    if (context.pair.settings.mode === 'upload-only') {
      if (clash.fetched) await rm(clash.fetched.path, { force: true })
      return { end: 'left', because: UPLOADS_ONLY_CONFLICT }
    }
    return settle(deps, context, clash)
  }
}

async function readClash(
  deps: ConflictDeps,
  context: ActionContext,
  root: Root,
  kind: ConflictRow['kind'],
): Promise<Clash | { ended: Ended }> {
  const { job } = context
  const local = context.case.local!
  const remote = context.case.remote!
  const seen = await lookAsSeen(context, root, local)
  if ('ended' in seen) return seen
  const { hash: known, sha256: knownStrong } = local
  const hashed =
    known === null || knownStrong === null
      ? await hashInside(deps.disk, root, seen.names, job)
      : { hash: known, sha256: knownStrong }
  if (hashed === 'unreadable') return { ended: unreadableHere(context, local, 'it may not be read') }
  if (hashed === 'changed') return { ended: { end: 'stale', because: 'it changed here meanwhile' } }
  const { hash, sha256 } = hashed
  if (local.hash === null && hash === remote.hash) return { ended: notedHash(context, { hash, sha256 }) }
  // What is known of OneDrive may be old: perhaps it has the same by now, or what is new here is its next version.
  const now = await lookAtItem(context, remote.itemId)
  if (!now) return { ended: await notGiven(context, [remote.itemId]) }
  if (isOther(remote, now)) {
    return { ended: staleWith(context, [now], 'it changed in OneDrive meanwhile') }
  }
  const clash = {
    root,
    names: seen.names,
    local: { ...local, hash, sha256 },
    remote,
    kind,
    fetched: undefined,
  }
  // Without a hash nobody can say that they differ; nor by one that both have although they differ from what was agreed.
  const isTold = remote.hash !== null && remote.hash !== hash
  return !isTold && remote.size === local.size ? comparedBytes(deps, context, clash) : clash
}

function notedHash(context: ActionContext, digests: Digests): Ended {
  const { pair } = context
  const local = context.case.local!
  const known = { id: local.id, stat: plainStat(local), ...digests }
  return {
    end: 'stale',
    because: 'both have the same content',
    write: (tx) => setLocalHash(tx, pair.name, known),
  }
}

async function comparedBytes(
  deps: ConflictDeps,
  context: ActionContext,
  clash: Clash,
): Promise<Clash | { ended: Ended }> {
  const { node, version } = context
  const { root, local, remote } = clash
  const fetched = await fetchContent(deps, context, root, remote)
  if ('ended' in fetched) return fetched
  if (fetched.sha256 !== local.sha256) return { ...clash, fetched }
  // It was fetched to be compared alone.
  await rm(fetched.path, { force: true })
  const stat = plainStat(local)
  return {
    ended: {
      end: 'done',
      note: 'both have the same content',
      write: (tx) =>
        endAgreed(tx, context, {
          node,
          version,
          remote,
          local: { id: local.id },
          localName: local.name,
          type: 'file',
          stat,
          hash: local.hash,
          sha256: local.sha256,
        }),
    },
  }
}

async function settle(deps: ConflictDeps, context: ActionContext, clash: Clash): Promise<Ended> {
  const { pair, store, node, version } = context
  const { local, remote, root, kind } = clash
  const about = { node, localHash: local.hash, remoteHash: remote.hash }
  const decided =
    pair.settings.conflicts === 'manual'
      ? await store.write((tx) => decidedState(tx, pair.name, about))
      : undefined
  const policy = decided === undefined ? pair.settings.conflicts : POLICY_OF[decided]
  const record = (state: ConflictRow['state']): Decided['record'] =>
    decided === undefined ? toConflictRecord(context, clash, state) : undefined
  switch (policy) {
    case 'manual': {
      const reason = { code: 'undecided', because: WAITS_FOR_DECISION } as const
      const end = { node, version, local, ...reason, record: toConflictRecord(context, clash, 'open') }
      return { end: 'done', note: WAITS_FOR_DECISION, write: (tx) => endOpenConflict(tx, pair.name, end) }
    }
    case 'keep-both':
      return setAside(context, root, { kind, isDetached: true })
    case 'keep-remote': {
      const end = {
        node,
        local,
        remote,
        record: record('kept-remote'),
        here: { hash: local.hash, sha256: local.sha256 },
      }
      return { end: 'done', write: (tx) => endKeptRemote(tx, pair.name, end) }
    }
    case 'keep-local':
      return keepLocal(deps, context, clash, record('kept-local'))
  }
}

const POLICY_OF: Record<'kept-both' | 'kept-local' | 'kept-remote', Exclude<ConflictPolicy, 'manual'>> = {
  'kept-both': 'keep-both',
  'kept-local': 'keep-local',
  'kept-remote': 'keep-remote',
}

function toConflictRecord(
  { node, job }: ActionContext,
  { local, remote, kind }: Pick<Clash, 'kind' | 'local' | 'remote'>,
  state: ConflictRow['state'],
): NonNullable<Decided['record']> {
  return {
    kind,
    path: job.payload.path,
    node,
    copyPath: null,
    at: job.clock.now(),
    state,
    localHash: local.hash,
    remoteHash: remote.hash,
  }
}

async function keepLocal(
  deps: ConflictDeps,
  context: ActionContext,
  clash: Clash,
  record: Decided['record'],
): Promise<Ended> {
  const { pair, job, node } = context
  const { root, local, remote, names } = clash
  const fetched = clash.fetched ?? (await fetchContent(deps, context, root, remote))
  if ('ended' in fetched) return fetched.ended
  putInTrash(root, fetched.path, names, { atMs: job.clock.now() })
  const end = { node, local, remote, record, there: fetched }
  return { end: 'done', write: (tx) => endKeptLocal(tx, pair.name, end) }
}

type Aside = z.infer<typeof asideSchema>

const asideSchema = z.object({
  kind: z.enum(['edit-edit', 'edit-delete', 'create-create']),
  isDetached: z.boolean(),
  copyName: z.string().min(1),
})

async function setAside(
  context: ActionContext,
  root: Root,
  how: Pick<Aside, 'kind' | 'isDetached'>,
): Promise<Ended> {
  const local = context.case.local!
  const names = await localNames(context, root, local)
  if (!names) return goneHere(context, 'where it is here is not known')
  try {
    const look = lookInside(root, names)
    if (!look) return goneHere(context)
    const aside = await renamed(context, root, names, how)
    if (aside) return asideAs(context, names, { ...how, ...aside })
    return await otherHere(context, local, lookInside(root, names) ?? look)
  } catch (thrown) {
    if (isNoFolder(thrown)) return goneHere(context)
    throw thrown
  }
}

/** The name that it has now, and its stat; undefined where it was not what it should be. */
async function renamed(
  { job, case: rows }: ActionContext,
  root: Root,
  names: string[],
  how: Pick<Aside, 'kind' | 'isDetached'>,
): Promise<{ copyName: string; stat: LocalStat } | undefined> {
  const atMs = job.clock.now()
  for (let count = 0; count < COPIES_MAX; count++) {
    const copyName = conflictNameOf(names.at(-1)!, atMs, count)
    const to = [...names.slice(0, -1), copyName]
    if (lookInside(root, to)) continue
    // Before it is done: else a look at the folder would take it for a rename by somebody.
    await job.save({ ...asObject(job.checkpoint), aside: { ...how, copyName } satisfies Aside })
    const moved = moveInside(root, { from: names, to, expect: plainStat(rows.local!), atMs })
    if (moved.outcome === 'done') return { copyName, stat: moved.stat }
    if (moved.outcome !== 'taken') return undefined
  }
  throw new TidemarkError(`There is no free name for a copy of ${names.join('/')}`, {
    kind: 'permanent',
    code: 'copies-full',
    hint: 'Move some of the conflict copies away.',
  })
}

/** By a try that was interrupted after the rename; a look may have seen the new name since. */
async function asideAlready(context: ActionContext, root: Root): Promise<Ended | undefined> {
  const local = context.case.local!
  const aside = asideSchema.safeParse(asObject(context.job.checkpoint).aside)
  const names = aside.success ? await localNames(context, root, local) : undefined
  if (!aside.success || !names) return undefined
  const copy = lookInside(root, [...names.slice(0, -1), aside.data.copyName])
  const isOwn = copy?.type === local.type && isSameThing(copy, local)
  const isMoved = local.name === aside.data.copyName || !lookInside(root, names)
  return isOwn && isMoved ? asideAs(context, names, aside.data) : undefined
}

function asideAs(
  { pair, job, node, version, case: rows }: ActionContext,
  names: readonly string[],
  { kind, isDetached, copyName, stat }: Aside & { stat?: LocalStat },
): Ended {
  const local = rows.local!
  const localHash = local.hash
  const remoteHash = rows.remote?.hash ?? null
  const path = job.payload.path
  const copyPath = [...names.slice(0, -1), copyName].join('/')
  const state = 'kept-both' as const
  const conflict = { kind, path, node, copyPath, localHash, remoteHash, at: job.clock.now(), state }
  return {
    end: 'done',
    note: `set aside as ${copyName}`,
    write: (tx) => {
      const aside = { node, version, localId: local.id, from: local, stat, copyName, isDetached, conflict }
      return endSetAside(tx, pair.name, aside)
    },
  }
}
