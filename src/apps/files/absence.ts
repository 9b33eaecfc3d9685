/**
 * What became of things in a folder of somebody else that OneDrive does not list any more, or says are deleted. There,
 * that proves nothing: they may have been moved to where was listed already, or be withheld from this account. So each
 * is looked at by its id.
 *
 *   not found                         ──▶ gone: deleted here as well, once all that was in it is gone, too
 *   refused, or in a folder that is   ──▶ withheld: stays here as it is, and people are told
 *   there, and below the top          ──▶ inside: it stays, and is told where it is now
 *   more than may be looked at        ──▶ unknown: it stays, and the next reading looks further
 */
import { asTidemarkError } from '../../base/errors.ts'
import { isWithheld, type SharedPair } from './shared-folder.ts'
import type { RemoteRow } from './trees.ts'

const DEPTH_MAX = 200
const PARALLEL = 8
/** What is moved may not be found for a moment; of what OneDrive says is deleted that is no surprise. */
export const MISSED_TRIES = 3

export type Fate = 'gone' | 'withheld' | 'inside'

/** Where things are now. */
export class ItemFates {
  readonly #pair: SharedPair
  readonly #options: { signal: AbortSignal; missingTries?: number }
  readonly #inside: Set<string>

  constructor(pair: SharedPair, options: { signal: AbortSignal; missingTries?: number }) {
    this.#pair = pair
    this.#options = options
    this.#inside = new Set([pair.rootItemId])
  }

  async of(itemId: string): Promise<Fate> {
    const { client, driveId } = this.#pair
    const passed: string[] = []
    let at = itemId
    while (!this.#inside.has(at)) {
      const unseen: Fate = at === itemId ? 'gone' : 'withheld'
      const item = await client.item(driveId, at, this.#options).catch((thrown: unknown) => {
        if (!isWithheld(thrown)) throw thrown
        return asTidemarkError(thrown).code === 'not-found' ? unseen : 'withheld'
      })
      if (typeof item === 'string') return item
      if (item.deleted) return unseen
      // It is in that drive, and not in the folder any more.
      if (item.type === 'root') return 'gone'
      passed.push(at)
      if (item.parentId === undefined || passed.length > DEPTH_MAX) return 'withheld'
      at = item.parentId
    }
    for (const id of passed) this.#inside.add(id)
    return 'inside'
  }
}

/** Of what a reading from the start has not named. */
export type Missed = {
  gone: readonly string[]
  /** The uppermost ones. */
  withheld: readonly string[]
  /** Something is there that was not named. */
  isMoving: boolean
  /** There is more than may be looked at. */
  isCut: boolean
}

export type MissedSource = {
  /** What was not named right in a folder; without one, in all folders that were named. */
  missed: (within: string | undefined, limit: number) => Promise<readonly string[]>
  fate: (itemId: string) => Promise<Fate>
}

/** `isHasty`: it ends as soon as something is found, since all is read again then. */
export async function judgeMissed(
  { missed, fate: fateOf }: MissedSource,
  { looksMax, signal, isHasty }: { looksMax: number; signal: AbortSignal; isHasty: boolean },
): Promise<Missed> {
  const gone: string[] = []
  const withheld: string[] = []
  let looks = 0
  let isMoving = false
  let isCut = false
  const areAllGone = async (within: string | undefined): Promise<boolean> => {
    const ids = await missed(within, looksMax - looks + 1)
    let areGone = true
    for (let at = 0; at < ids.length; at += PARALLEL) {
      signal.throwIfAborted()
      if (isHasty && isMoving) return false
      const some = ids.slice(at, Math.min(at + PARALLEL, at + looksMax - looks))
      isCut ||= some.length < Math.min(PARALLEL, ids.length - at)
      looks += some.length
      const found = await Promise.all(some.map(async (id) => ({ id, fate: await fateOf(id) })))
      for (const { id, fate } of found) {
        if (fate === 'withheld') withheld.push(id)
        if (fate === 'inside') isMoving = true
        // Something may have left the folder before that was deleted.
        const isGone = fate === 'gone' && (await areAllGone(id))
        if (isGone) gone.push(id)
        areGone &&= isGone
      }
      if (isCut) return false
    }
    return areGone
  }
  await areAllGone(undefined)
  return { gone, withheld, isMoving, isCut }
}

/** Of what OneDrive says is deleted. */
export type Spared = {
  /** Those that are not. */
  ids: ReadonlySet<string>
  /** The uppermost ones of those that are withheld. */
  withheld: readonly string[]
}

/** `told`: what was known of them. What is in a folder goes with it. */
export async function judgeDeleted(
  pair: SharedPair,
  told: ReadonlyMap<string, RemoteRow>,
  signal: AbortSignal,
): Promise<Spared> {
  const fates = new ItemFates(pair, { signal })
  const judged = new Map<string, Fate>()
  const withheld: string[] = []
  let level = [...told.values()].filter(({ parentId }) => parentId !== null && !told.has(parentId))
  const children = Map.groupBy(told.values(), ({ parentId }) => parentId)
  while (level.length > 0) {
    for (let at = 0; at < level.length; at += PARALLEL) {
      signal.throwIfAborted()
      await Promise.all(
        level.slice(at, at + PARALLEL).map(async ({ itemId, parentId }) => {
          const above = judged.get(parentId!)
          const fate = above && above !== 'inside' ? above : await fates.of(itemId)
          judged.set(itemId, fate)
          if (fate === 'withheld' && above !== 'withheld') withheld.push(itemId)
        }),
      )
    }
    level = level.flatMap(({ itemId }) => children.get(itemId) ?? [])
  }
  const ids = [...told.keys()].filter((id) => judged.get(id) !== 'gone')
  return { ids: new Set(ids), withheld }
}
