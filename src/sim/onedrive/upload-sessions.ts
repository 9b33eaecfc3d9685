/**
 * Uploads in fragments. A session has a secret address, takes fragments in order, and becomes a file with its
 * last one. Nothing of a fragment counts until all of it is there, and nothing is visible before the last.
 *
 * States: open (fragments come) → committed (the file is there, the session is gone), or canceled or expired
 * (gone, too), or full (all bytes are there but not the file: its name was taken, or its commit is deferred).
 */
import type { Random } from '../../base/random.ts'
import type { Content, ContentWriter } from './content.ts'
import type { ConflictBehavior, Drive, FileTimes } from './drive.ts'
import { DriveFault } from './drive-fault.ts'
import { GraphError, graphFault, invalid } from './errors.ts'
import type { Item } from './item.ts'
import { cTagOf, eTagOf } from './item-json.ts'
import type { Quirks } from './quirks.ts'

export type UploadTarget = {
  parent: Item
  name: string
  conflict: ConflictBehavior
  times: FileTimes
  /** The session was made for this item, whatever it is called by then. */
  item?: Item
  /** The item must still have this eTag or cTag in the end. */
  ifMatch?: string
  /** The last fragment does not make the file; a POST to the session's address does. */
  isDeferred?: boolean
}

export type UploadSession = {
  id: string
  target: UploadTarget
  writer: ContentWriter
  total: number | undefined
  expiresMs: number
  isLeaked: boolean
}

export type Fragment = { from: number; to: number; total: number; chunks: readonly Buffer[] }

export const FRAGMENT_UNIT_BYTES = 320 * 1024
/** Must be less. */
export const FRAGMENT_BYTES_MAX = 60 * 2 ** 20
export const SESSION_MS_DEFAULT = 24 * 3_600_000
const SESSIONS_MAX = 100_000
const SWEEP_EVERY = 100

export class UploadSessions {
  sessionMs = SESSION_MS_DEFAULT
  readonly #drive: Drive
  readonly #quirks: Quirks
  readonly #random: Random
  readonly #sessions = new Map<string, UploadSession>()
  #created = 0
  readonly #commit: (target: UploadTarget, content: Content) => { item: Item; isNew: boolean }

  constructor(options: {
    drive: Drive
    quirks: Quirks
    random: Random
    commit: (target: UploadTarget, content: Content) => { item: Item; isNew: boolean }
  }) {
    this.#drive = options.drive
    this.#quirks = options.quirks
    this.#random = options.random
    this.#commit = options.commit
  }

  get open(): number {
    return this.#sessions.size
  }

  create(target: UploadTarget, fileSize: number | undefined): UploadSession {
    this.#sweep()
    if (this.#sessions.size >= SESSIONS_MAX) throw new GraphError(graphFault(429))
    if (fileSize !== undefined) this.#drive.checkQuota(fileSize)
    const session: UploadSession = {
      id: this.#newId(),
      target,
      writer: this.#drive.contents.writer(),
      total: undefined,
      expiresMs: this.#drive.nowMs + this.sessionMs,
      isLeaked: false,
    }
    this.#sessions.set(session.id, session)
    return session
  }

  get(id: string): UploadSession {
    const session = this.#sessions.get(id)
    if (session && session.expiresMs > this.#drive.nowMs) return session
    if (session) this.#end(session)
    throw new GraphError(graphFault(404, { message: 'The upload session was not found' }))
  }

  /** The file when that was the last fragment. */
  append(id: string, fragment: Fragment): { item: Item; isNew: boolean } | UploadSession {
    const session = this.get(id)
    this.#check(session, fragment)
    if (session.total === undefined) {
      this.#drive.checkQuota(fragment.total)
      session.total = fragment.total
    }
    for (const chunk of fragment.chunks) session.writer.append(chunk)
    session.expiresMs = this.#drive.nowMs + this.sessionMs
    if (session.writer.received < fragment.total || session.target.isDeferred) return session
    return this.#finish(session)
  }

  /** What a session with `deferCommit` waits for. */
  commit(id: string): { item: Item; isNew: boolean } {
    const session = this.get(id)
    const { total, writer } = session
    if (total === undefined || writer.received < total) throw invalid('The upload is not complete.')
    return this.#finish(session)
  }

  cancel(id: string): void {
    const session = this.get(id)
    if (!this.#quirks.sessionsLeak) this.#end(session)
    else if (!session.isLeaked) {
      session.isLeaked = true
      this.#drive.reservedBytes += session.writer.received
    }
  }

  #check(session: UploadSession, { from, to, total }: Fragment): void {
    const length = to - from + 1
    const { received } = session.writer
    if (session.total !== undefined && session.total !== total) {
      throw invalid('The total length does not match the one of the first fragment.')
    }
    if (to >= total || length < 1) throw invalid('The Content-Range header is invalid.')
    if (length >= FRAGMENT_BYTES_MAX) {
      throw new GraphError(graphFault(413, { code: 'invalidRequest', message: 'The fragment is too large.' }))
    }
    if (from !== received) {
      const innerCode = from < received ? 'fragmentOverlap' : 'fragmentOutOfOrder'
      const message = `The fragment begins at ${from}, but ${received} is expected.`
      throw new GraphError(graphFault(416, { innerCode, message }))
    }
    if (to + 1 < total && length % FRAGMENT_UNIT_BYTES !== 0) {
      throw invalid('The fragment is not a multiple of 320 KiB.')
    }
  }

  #finish(session: UploadSession): { item: Item; isNew: boolean } {
    const { target } = session
    const there = target.item ?? this.#drive.child(target.parent, target.name)
    const isForgotten = this.#quirks.sessionIfMatchForgotten
    if (target.ifMatch !== undefined && !isForgotten && !isMatch(this.#drive, there, target.ifMatch)) {
      this.#end(session)
      throw new DriveFault('resourceModified', "ETag does not match current item's value.")
    }
    // A name that was taken meanwhile leaves the session as it is, full.
    const made = this.#commit(target, session.writer.finish())
    this.#end(session)
    return made
  }

  /** Now and then, so that sessions which nobody asks for do not keep their bytes. */
  #sweep(): void {
    this.#created += 1
    if (this.#created % SWEEP_EVERY !== 0) return
    for (const session of this.#sessions.values()) {
      if (session.expiresMs <= this.#drive.nowMs) this.#end(session)
    }
  }

  #end(session: UploadSession): void {
    if (session.isLeaked) this.#drive.reservedBytes -= session.writer.received
    this.#sessions.delete(session.id)
  }

  #newId(): string {
    let id = ''
    for (let at = 0; at < 4; at++) id += Math.floor(this.#random() * 2 ** 32).toString(36)
    return id
  }
}

export function isMatch(drive: Drive, item: Item | undefined, header: string): boolean {
  if (item?.deleted !== 'no') return false
  if (header.trim() === '*') return true
  const tags = [plainTag(eTagOf(drive, item)), plainTag(cTagOf(drive, item))]
  return header.split(/,(?=\s*(?:W\/)?")/).some((one) => tags.includes(plainTag(one)))
}

function plainTag(tag: string): string {
  return tag
    .trim()
    .replace(/^W\//, '')
    .replace(/^"(.*)"$/, '$1')
}
