/**
 * A made-up post office with three mailboxes. What lies in them is computed from names, so that every start
 * sees the same letters. Things go wrong as they do elsewhere: a long call is sometimes cut off, a letter
 * has been deleted since it was listed, some are drafts, and two are damaged.
 */
import { setTimeout as pass } from 'node:timers/promises'
import { TidemarkError } from 'tidemark/engine'

export const MONTHS = ['2026-01', '2026-02', '2026-03', '2026-04', '2026-05', '2026-06'] as const

/** Letters a month. */
export const MAILBOXES: Readonly<Record<string, number>> = { ada: 40, ben: 15, cleo: 5 }

export type Letter = { id: string; subject: string }
export type Found = Letter | 'gone' | 'draft'

const DAMAGED: ReadonlySet<string> = new Set(['ada/2026-02/17', 'ben/2026-04/03'])
const DELETED = '/11'
const DRAFT = '/07'
const LIST_MS = 150
const LETTER_MS = 60
/** Calls for at least this many letters are long enough to be cut off; one in four is, the first time. */
const LONG_CALL = 5
const CUT_OFF_SHARE = 0.25

export type PostOfficeOptions = { speed: number; mended: boolean; random: () => number }

export class PostOffice {
  readonly #options: PostOfficeOptions
  readonly #cutOff = new Set<string>()

  constructor(options: PostOfficeOptions) {
    this.#options = options
  }

  async list(mailbox: string, month: string, signal: AbortSignal): Promise<string[]> {
    await this.#take(LIST_MS, signal)
    const letters = MAILBOXES[mailbox] ?? 0
    return Array.from({ length: letters }, (_, n) => `${mailbox}/${month}/${String(n + 1).padStart(2, '0')}`)
  }

  /** All or nothing: one damaged letter spoils the whole call, and the answer does not say which. */
  async fetch(ids: readonly string[], signal: AbortSignal): Promise<Map<string, Found>> {
    await this.#take(LETTER_MS * ids.length, signal)
    this.#perhapsCutOff(ids)
    if (!this.#options.mended && ids.some((id) => DAMAGED.has(id))) {
      throw new TidemarkError('a letter of this call is damaged', { kind: 'permanent' })
    }
    return new Map(ids.map((id) => [id, this.#look(id)]))
  }

  async open(_id: string, signal: AbortSignal): Promise<void> {
    await this.#take(LETTER_MS, signal)
  }

  #look(id: string): Found {
    if (id.endsWith(DELETED)) return 'gone'
    if (id.endsWith(DRAFT)) return 'draft'
    return { id, subject: `Letter ${id}` }
  }

  #perhapsCutOff(ids: readonly string[]): void {
    const call = ids.join()
    if (ids.length < LONG_CALL || this.#cutOff.has(call) || this.#options.random() >= CUT_OFF_SHARE) return
    this.#cutOff.add(call)
    throw new TidemarkError('the post office hung up', { kind: 'transient' })
  }

  async #take(ms: number, signal: AbortSignal): Promise<void> {
    await pass(ms / this.#options.speed, undefined, { signal })
  }
}
