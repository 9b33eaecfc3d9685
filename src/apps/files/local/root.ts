/**
 * The root: the folder that is kept in step with OneDrive. Its marker says that it is there and that it is the right
 * one: an empty folder in its place (a disk that is not mounted, a wrong click) must never look like "all deleted".
 *
 *   <root>/.tidemark/root.json   the marker
 *   <root>/.tidemark/partial     downloads on their way
 *   <root>/.tidemark/trash       what was deleted or replaced here
 */
import {
  accessSync,
  constants,
  linkSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  writeFileSync,
} from 'node:fs'
import { rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { z } from 'zod'
import { UsageError } from '../../../base/errors.ts'
import { OWN_FOLDER } from '../names.ts'
import { errnoOf, isAbsence, isSameThing, type Look, lookAt } from './stat.ts'

export type Root = {
  /** Without any link in it. */
  path: string
  pair: string
  markerId: string
  /** The folder as it was when it was opened. */
  look: Look
}

const MARKER = 'root.json'
const markerSchema = z.object({
  markerId: z.string().min(1),
  drive: z.string().min(1),
  createdAt: z.string(),
})
export type Marker = z.infer<typeof markerSchema>

/** Makes the folder if need be, and marks it. The path to keep is that of what it returns. */
export async function createRoot(path: string, marker: Marker): Promise<Root> {
  mkdirSync(path, { recursive: true })
  const real = realpathSync(path)
  refuseNested(real)
  const own = join(real, OWN_FOLDER)
  refuseForeign(own)
  mkdirOwn(own)
  const markerPath = join(own, MARKER)
  const draft = `${markerPath}.${marker.markerId.replaceAll(/[^\w-]/g, '_')}.tmp`
  writeFileSync(draft, `${JSON.stringify(marker, undefined, 2)}\n`, { mode: 0o600, flush: true })
  try {
    // Whoever is first marks it: a link never replaces anything.
    linkSync(draft, markerPath)
  } catch (error) {
    if (errnoOf(error) !== 'EEXIST') throw error
    const there = readMarker(real)
    if (there.markerId !== marker.markerId) {
      throw new UsageError(`The folder ${real} is already kept in step with the drive ${there.drive}.`, {
        code: 'marker-foreign',
        hint: 'Choose another folder, or remove that drive first.',
      })
    }
  } finally {
    await rm(draft, { force: true })
  }
  return openRoot(real, marker.markerId)
}

/** Throws where the folder is not there, or is not the one with this marker. */
export function openRoot(path: string, markerId: string): Root {
  const look = lookAtRoot(path)
  const marker = readMarker(path)
  if (marker.markerId !== markerId) {
    throw new UsageError(
      `The folder ${path} belongs to the drive ${marker.drive}: its marker is another one.`,
      {
        code: 'marker-foreign',
        hint: 'Put the folder back that was here before. Nothing was changed on either side.',
      },
    )
  }
  for (const name of ['partial', 'trash']) mkdirOwn(join(path, OWN_FOLDER, name))
  return { path, pair: marker.drive, markerId, look }
}

/** Still there, still the same folder, still marked: before anything is concluded from what is not in it. */
export function checkRoot(root: Root): void {
  const now = openRoot(root.path, root.markerId)
  if (!isSameThing(now.look, root.look)) {
    throw missing(`The folder ${root.path} was replaced by another one while Tidemark was looking at it.`)
  }
}

/** Folders of our own. */
export type OwnKind = 'partial' | 'trash'

/** A path of our own inside of the root, for people; whoever reads or writes there holds its folder (folder.ts). */
export function ownPath(root: Pick<Root, 'path'>, kind: OwnKind, ...names: string[]): string {
  return join(root.path, OWN_FOLDER, kind, ...names)
}

function lookAtRoot(path: string): Look {
  let real: string
  try {
    real = realpathSync(path)
  } catch (error) {
    if (isAbsence(error)) throw missing(`The folder ${path} is not there.`, error)
    throw missing(`The folder ${path} cannot be looked at.`, error)
  }
  if (real !== path) throw missing(`The folder ${path} is now a link to ${real}.`)
  const look = lookAt(path)
  if (look?.type !== 'folder') throw missing(`${path} is not a folder.`)
  try {
    accessSync(path, constants.R_OK | constants.X_OK)
  } catch (error) {
    throw missing(`The folder ${path} cannot be read.`, error)
  }
  return look
}

function missing(message: string, cause?: unknown): UsageError {
  return new UsageError(message, {
    code: 'root-missing',
    hint: 'Bring it back: is its disk mounted, was it moved? Until then nothing is changed on either side.',
    cause,
  })
}

function readMarker(path: string): Marker {
  const lost = (what: string, cause?: unknown): UsageError =>
    new UsageError(`The folder ${path} ${what}.`, {
      code: 'marker-missing',
      hint:
        'If its disk is not mounted or its content was moved, bring that back. If only the marker was deleted, ' +
        'begin anew with the folder (tidemark files remove, then tidemark files sync with its path): what is equal on both sides is not copied again.',
      cause,
    })
  const own = join(path, OWN_FOLDER)
  if (lookAt(own)?.type !== 'folder') throw lost(`has no marker: ${OWN_FOLDER} is not there`)
  let text: string
  try {
    text = readFileSync(join(own, MARKER), 'utf8')
  } catch (error) {
    if (isAbsence(error)) throw lost(`has no marker: ${OWN_FOLDER}/${MARKER} is not there`, error)
    throw lost('has a marker that cannot be read', error)
  }
  try {
    return markerSchema.parse(JSON.parse(text))
  } catch (error) {
    throw lost('has a marker that is damaged', error)
  }
}

function mkdirOwn(path: string): void {
  if (lookAt(path)?.type === 'folder') return
  mkdirSync(path, { recursive: true, mode: 0o700 })
  if (lookAt(path)?.type === 'folder') return
  throw new UsageError(`${path} is not a folder of Tidemark's own, but a link.`, {
    code: 'own-folder-other',
    hint: 'Move it away, so that Tidemark can make its own.',
  })
}

/** Where others may write to the root: what is on its way and in the trash would be theirs to read and to exchange. */
function refuseForeign(own: string): void {
  const uid = lstatSync(own, { throwIfNoEntry: false })?.uid
  if (uid === undefined || process.getuid === undefined || uid === process.getuid()) return
  throw new UsageError(`${own} belongs to another user.`, {
    code: 'own-folder-other',
    hint: 'Move it away, so that Tidemark can make its own.',
  })
}

/** Two folder pairs over the same files would undo each other's work. */
function refuseNested(real: string): void {
  for (let above = dirname(real), below = real; above !== below; below = above, above = dirname(above)) {
    if (!lookAt(join(above, OWN_FOLDER, MARKER))) continue
    throw new UsageError(`The folder ${real} lies in ${above}, which is kept in step with a drive already.`, {
      code: 'root-nested',
      hint: 'Choose a folder outside of it.',
    })
  }
}
