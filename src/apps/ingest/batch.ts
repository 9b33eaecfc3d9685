/** Records of one object that are published together, and the position behind them. */
import type { Clock } from '../../base/clock.ts'
import { TidemarkError } from '../../base/errors.ts'
import type { NewDocument } from '../../search/contract.ts'
import type { ReadItem } from './contract.ts'
import { type RecordOf, recordDocument } from './record-document.ts'
import type { IngestSettings } from './settings.ts'
import type { QuarantineRow } from './store/rows.ts'
import type { Position } from './store/shards.ts'

/** Somebody wants to see what was read, also of an object that comes slowly. */
const BATCH_MS_MAX = 5_000
const EXCERPT_BYTES_MAX = 4_096

type BatchInput = {
  of: RecordOf
  from: Position
  map: (value: Readonly<Record<string, unknown>>) => Parameters<typeof recordDocument>[2]
  clock: Clock
  settings: Pick<IngestSettings, 'batchBytes' | 'batchRecords'>
}

export class Batch {
  readonly documents: NewDocument[] = []
  readonly bad: Omit<QuarantineRow, 'uri' | 'tried_at'>[] = []
  to: Position
  readonly #in: BatchInput
  readonly #untilMs: number
  #bytes = 0
  #n = 0

  constructor(input: BatchInput) {
    this.#in = input
    this.to = input.from
    this.#untilMs = input.clock.monotonicMs() + BATCH_MS_MAX
  }

  get isEmpty(): boolean {
    return this.#n === 0
  }

  isFull(): boolean {
    const { clock, settings } = this.#in
    return (
      this.#n >= settings.batchRecords ||
      this.#bytes >= settings.batchBytes ||
      clock.monotonicMs() >= this.#untilMs
    )
  }

  add(item: ReadItem): void {
    const { at, place } = item
    if (at !== this.to.records) {
      throw new TidemarkError(`Record ${at} was read where ${this.to.records} should have been.`, {
        kind: 'bug',
      })
    }
    if (item.kind === 'record') {
      const document = recordDocument(this.#in.of, at, this.#in.map(item.value), place.line)
      this.documents.push(document)
      const { content } = document
      if (content && 'chunks' in content) for (const { text } of content.chunks) this.#bytes += text.length
    } else this.#quarantine(item)
    this.#n += 1
    const isBad = item.kind === 'bad' ? 1 : 0
    const { published, quarantined } = this.to
    this.to = {
      records: at + 1,
      byte: place.endByte,
      line: place.line,
      published: published + 1 - isBad,
      quarantined: quarantined + isBad,
    }
  }

  #quarantine({ at, place, code, reason, excerpt }: Extract<ReadItem, { kind: 'bad' }>): void {
    const { of, clock } = this.#in
    const kept = excerpt.slice(0, EXCERPT_BYTES_MAX)
    this.#bytes += kept.length
    this.bad.push({
      pipeline: of.pipeline,
      shard: of.shard,
      at,
      from_byte: this.to.byte,
      from_line: this.to.line,
      line: place.line,
      code,
      reason,
      excerpt: kept,
      created_at: clock.now(),
    })
  }
}
