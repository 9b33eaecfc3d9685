/**
 * A simulated drive that survives its process: every change of it, whoever makes it, is a line in a journal, written
 * before it is done. Read again, the lines are done again at their own times, and give the same ids and the same order
 * of changes: links to "what is new" that were given out before stay good.
 *
 * A line whose change was never done (the process died in between) is done at the next start: to whoever asked for it,
 * that looks like an answer that was lost on its way, which can happen in any cloud.
 */
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { DemoJournal } from '../../../app/demo.ts'
import { replaceFile } from '../../../base/whole-file.ts'
import { bytesOfContent, type Content } from '../../../sim/onedrive/content.ts'
import type { Drive } from '../../../sim/onedrive/drive.ts'
import { DriveFault } from '../../../sim/onedrive/drive-fault.ts'
import type { Item } from '../../../sim/onedrive/item.ts'

const JOURNAL_FILE = 'demo-drive.jsonl'
/** What is too large for a line. */
const CONTENT_FOLDER = 'demo-drive'
const INLINE_BYTES_MAX = 4_096

const METHODS = [
  'createFolder',
  'putFile',
  'setContent',
  'update',
  'delete',
  'restore',
  'purge',
  'copy',
] as const

const lineSchema = z.object({
  n: z.int().min(0),
  atMs: z.int(),
  do: z.enum(METHODS),
  args: z.array(z.unknown()),
})
type Line = z.output<typeof lineSchema>

/** Does again what the journal of this folder holds, and writes down whatever comes from then on. */
export function keepDrive(
  state: Drive,
  { folder, now, at }: { folder: string; now: () => number; at: (ms: number, run: () => void) => void },
): DemoJournal<Line> {
  const codec = new LineCodec(state, folder)
  const journal = new DemoJournal(join(folder, JOURNAL_FILE), lineSchema)
  for (const line of journal.before) at(line.atMs, () => codec.redo(line))
  let depth = 0
  for (const method of METHODS) {
    const act = (state[method] as (...args: unknown[]) => unknown).bind(state)
    const noted = (...args: unknown[]): unknown => {
      // What a change does on its way is part of it.
      if (depth === 0) {
        const plain = args.map((arg) => codec.plain(arg))
        journal.note({ n: journal.size, atMs: now(), do: method, args: plain })
      }
      depth += 1
      try {
        return act(...args)
      } finally {
        depth -= 1
      }
    }
    Object.defineProperty(state, method, { value: noted })
  }
  return journal
}

/** Items as their ids and contents as their bytes, and back. */
class LineCodec {
  readonly #state: Drive
  readonly #folder: string

  constructor(state: Drive, folder: string) {
    this.#state = state
    this.#folder = folder
  }

  redo({ do: method, args }: Line): void {
    const act = this.#state[method] as (...given: unknown[]) => unknown
    try {
      act.apply(
        this.#state,
        args.map((arg) => this.#real(arg)),
      )
    } catch (thrown) {
      // Refused then as it is now.
      if (!(thrown instanceof DriveFault)) throw thrown
    }
  }

  plain(value: unknown): unknown {
    if (typeof value !== 'object' || value === null) return value
    if (isItem(value)) return { $item: value.id }
    if (isContent(value)) return { $content: this.#kept(value) }
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, this.plain(inner)]))
  }

  #real(value: unknown): unknown {
    if (typeof value !== 'object' || value === null) return value
    if ('$item' in value) return this.#state.ever(String(value.$item))
    if ('$content' in value) return this.#content(value.$content as Kept)
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, this.#real(inner)]))
  }

  #kept(content: Content): Kept {
    const { source, hash, size, key } = content
    if (source.kind === 'synthetic') return { synthetic: source.synthetic }
    const bytes = bytesOfContent(content)
    if (!bytes) return { key, hash, size }
    if (bytes.length <= INLINE_BYTES_MAX) return { base64: bytes.toString('base64') }
    const name = createHash('sha256').update(key).digest('hex')
    const file = join(this.#folder, CONTENT_FOLDER, name)
    if (!existsSync(file)) {
      mkdirSync(join(this.#folder, CONTENT_FOLDER), { recursive: true, mode: 0o700 })
      replaceFile(file, bytes)
    }
    return { file: name }
  }

  #content(kept: Kept): Content {
    if ('synthetic' in kept) return this.#state.addContent(kept.synthetic)
    if ('base64' in kept) return this.#state.addContent(Buffer.from(kept.base64, 'base64'))
    if ('file' in kept)
      return this.#state.addContent(readFileSync(join(this.#folder, CONTENT_FOLDER, kept.file)))
    return this.#state.contents.keep({ key: kept.hash, ...kept, source: { kind: 'forgotten' } })
  }
}

type Kept =
  | { synthetic: { seed: number; size: number } }
  | { base64: string }
  | { file: string }
  /** The key was the hash once. */
  | { key?: string; hash: string; size: number }

function isItem(value: object): value is Item {
  return 'id' in value && 'kind' in value && 'eVersion' in value
}

function isContent(value: object): value is Content {
  return 'source' in value && 'hash' in value && 'key' in value
}
