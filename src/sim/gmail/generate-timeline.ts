/**
 * When messages arrive, which of them answer which, and what labels they have: everything about a
 * generated mailbox but the bytes, in a few typed arrays.
 */
import type { Random } from '../../base/random.ts'
import { below, mixed, streamOf, zipf } from './generate-chance.ts'
import { kindAt, type Profile } from './generate-kinds.ts'
import { type Person, peopleOf } from './generate-people.ts'
import type { LoadedEntry } from './mailbox.ts'

const OPEN_THREADS = 64
const DEPTH_MAX = 40
const REPLY_SHARE = 0.45
/** Mail became more over the years: below 1, more of it lies near the end. */
const GROWTH = 0.7
const SAME_MOMENT_EVERY = 97
const PURPOSE = { time: 1, person: 2, labels: 3, threadLabel: 4 }

export type TimelineOptions = {
  seed: number
  messages: number
  fromMs: number
  toMs: number
  profile: Profile
}

export const USER_LABELS = [
  'Work',
  'Family',
  'Travel',
  'Receipts',
  'Work/Projects',
  'Read later',
  'Häuser',
  '重要',
]

export class Timeline {
  readonly options: TimelineOptions
  readonly people: readonly Person[]
  readonly internalMs: Float64Array
  readonly arrivedMs: Float64Array
  /** What a message answers; -1 when it begins a thread. */
  readonly parent: Int32Array
  readonly root: Int32Array
  readonly #depth: Uint8Array

  constructor(options: TimelineOptions) {
    this.options = options
    this.people = peopleOf(options.seed)
    this.internalMs = new Float64Array(options.messages)
    this.arrivedMs = new Float64Array(options.messages)
    this.parent = new Int32Array(options.messages)
    this.root = new Int32Array(options.messages)
    this.#depth = new Uint8Array(options.messages)
    this.#fill(streamOf(options.seed, 0, PURPOSE.time))
  }

  /** The one with whom the owner has this conversation. */
  personOf(index: number): Person {
    return this.people[
      zipf(streamOf(this.options.seed, this.root[index]!, PURPOSE.person), this.people.length)
    ]!
  }

  /** In a conversation the two take turns. */
  isFromOwner(index: number): boolean {
    const root = this.root[index]!
    const begun = !this.personOf(root).isList && mixed(this.options.seed, root, 0x0f) % 10 === 0
    return begun === (this.#depth[index]! % 2 === 0)
  }

  *entries(labelIds: readonly string[]): Generator<LoadedEntry> {
    for (let index = 0; index < this.options.messages; index += 1) {
      yield {
        internalMs: this.internalMs[index]!,
        arrivedMs: this.arrivedMs[index]!,
        labelIds: this.#labels(index, labelIds),
        threadIndex: this.root[index]!,
      }
    }
  }

  #fill(random: Random): void {
    const { messages, fromMs, toMs, seed, profile } = this.options
    const open: number[] = []
    for (let index = 0; index < messages; index += 1) {
      const isBurst = index > 0 && index % SAME_MOMENT_EVERY === 0
      const share = ((index + random()) / messages) ** GROWTH
      const arrivedMs = isBurst ? this.arrivedMs[index - 1]! : Math.floor(fromMs + (toMs - fromMs) * share)
      this.arrivedMs[index] = arrivedMs
      const isOld = kindAt({ seed, index, profile }) === 'old-dated'
      this.internalMs[index] = isOld ? Math.floor(fromMs + (arrivedMs - fromMs) * 0.8 * random()) : arrivedMs
      this.#join(index, open, random)
    }
  }

  /** Answers an open conversation or begins one; newsletters are not answered. */
  #join(index: number, open: number[], random: Random): void {
    const isReply = open.length > 0 && random() < REPLY_SHARE
    const at = isReply ? open.length - 1 - zipf(random, open.length) : -1
    const tip = at < 0 ? -1 : open[at]!
    // Now and then somebody answers the first message instead of the last.
    const parent = tip >= 0 && random() < 0.15 ? this.root[tip]! : tip
    this.parent[index] = parent
    this.root[index] = parent < 0 ? index : this.root[parent]!
    this.#depth[index] = parent < 0 ? 0 : this.#depth[parent]! + 1
    if (at >= 0) open.splice(at, 1)
    if (this.#depth[index]! < DEPTH_MAX && !this.personOf(index).isList) open.push(index)
    if (open.length > OPEN_THREADS) open.shift()
  }

  #labels(index: number, labelIds: readonly string[]): string[] {
    const { seed } = this.options
    const random = streamOf(seed, index, PURPOSE.labels)
    const thread = streamOf(seed, this.root[index]!, PURPOSE.threadLabel)
    const labels: string[] = []
    if (labelIds.length > 0 && thread() < 0.25) labels.push(labelIds[below(thread, labelIds.length)]!)
    if (random() < 0.03) labels.push('STARRED')
    if (this.isFromOwner(index)) return [...labels, random() < 0.01 ? 'DRAFT' : 'SENT']
    const fate = random()
    if (random() < 0.2) labels.push('UNREAD')
    if (fate < 0.02) return [...labels, 'SPAM']
    if (fate < 0.04) return [...labels, 'TRASH']
    if (fate < 0.5) labels.push('INBOX')
    if (this.personOf(index).isList) {
      labels.push(random() < 0.7 ? 'CATEGORY_PROMOTIONS' : 'CATEGORY_UPDATES')
    } else {
      labels.push('CATEGORY_PERSONAL')
      if (random() < 0.3) labels.push('IMPORTANT')
    }
    return labels
  }
}
