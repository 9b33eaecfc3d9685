/**
 * What a watch tells of: each thing that it did, as long as they are few, and their numbers where they are many; what
 * failed; and what needs somebody, as often as that changes.
 */

import type { CliContext } from '../../../app/command.ts'
import { formatBytes, formatCount } from '../../../base/format.ts'
import { actionView } from '../api/history.ts'
import type { ActionView } from '../api/schemas.ts'
import { streamOf } from '../folder-pair.ts'
import { folderEnd, folderObstacle } from '../sources.ts'
import type { OpenedFiles } from './context.ts'
import { explainTroubles } from './held-deletes.ts'

/** At once; more are only counted. Programs are told of each. */
const LINES_MAX = 20
/** Between two looks; of more, only those that failed are sure to be told. */
const KEPT_MAX = 10_000
const FAILED_MAX = 100
const KINDS: ReadonlySet<string> = new Set(['files.check', 'files.download', 'files.upload', 'files.change'])

/** `skipped`: not needed any more, or it could not be done. */
const ENDS: ReadonlySet<string> = new Set(['done', 'failed', 'skipped'])

type Told = ActionView & { folder: string }

export class WatchJournal {
  readonly #context: CliContext
  readonly #opened: OpenedFiles
  readonly #unlisten: () => void
  #ended: { id: number; folder: string }[] = []
  readonly #needs = new Map<string, string>()
  /** Folders in which anything happened: nothing else is looked at, for a watch that idles shall cost nothing. */
  readonly #changed: Set<string>

  constructor(context: CliContext, opened: OpenedFiles, names: readonly string[]) {
    this.#context = context
    this.#opened = opened
    this.#changed = new Set(names)
    const byStream = new Map(names.map((name) => [streamOf(name), name]))
    this.#unlisten = opened.engine.events.on((event) => {
      if (event.type !== 'job' || !ENDS.has(event.what)) return
      const folder = byStream.get(event.stream ?? '')
      if (folder === undefined) return
      this.#changed.add(folder)
      if (!KINDS.has(event.kind)) return
      if (this.#ended.length < KEPT_MAX || event.what === 'failed') this.#ended.push({ id: event.id, folder })
    })
  }

  end(): void {
    this.#unlisten()
  }

  get hasNews(): boolean {
    return this.#ended.length > 0
  }

  /** What was done since the last time. */
  async tell(): Promise<void> {
    const actions: Told[] = []
    for (const { id, folder } of this.#ended.splice(0)) {
      const [row] = await this.#opened.ledger.jobs({ from: id, before: id + 1, limit: 1 })
      const view = row && actionView(row)
      // Comparing is no change; what was in step already is no news.
      const isNews =
        view && view.result !== 'not needed' && (view.verb !== 'check' || view.result === 'failed')
      if (isNews) actions.push({ ...view, folder })
    }
    const { output } = this.#context
    if (output.json) {
      for (const { text: _, ...action } of actions) output.event({ type: 'action', ...action })
      return
    }
    const failed = actions.filter(({ result }) => result === 'failed')
    const done = actions.filter(({ result }) => result !== 'failed')
    for (const action of failed.slice(0, LINES_MAX)) output.note(actionLine(action))
    if (failed.length > LINES_MAX) output.note(`${formatCount(failed.length - LINES_MAX)} more failed`)
    for (const line of done.length > LINES_MAX ? countLines(done) : done.map(actionLine)) output.note(line)
  }

  /** Conflicts and what is left alone, where that is other than it was last told. */
  async tellNeeds(names: readonly string[]): Promise<void> {
    for (const name of names) {
      if (!this.#changed.delete(name)) continue
      const end = await folderEnd(this.#opened, name)
      const { conflicts, troubles } = end
      const now = JSON.stringify([conflicts, troubles])
      const before = this.#needs.get(name)
      this.#needs.set(name, now)
      if (before === now) continue
      const { output } = this.#context
      if (output.json) {
        const { ledger, files } = this.#opened
        const failed = await ledger.jobs({ state: 'failed', stream: streamOf(name), limit: FAILED_MAX })
        output.event({
          type: 'needs',
          folder: name,
          conflicts,
          leftAlone: troubles,
          failed: failed.length,
          obstacle: folderObstacle(files, name)?.error.message ?? null,
        })
      } else if (conflicts > 0 || troubles.length > 0) explainTroubles(this.#context, { ...end, leftOut: 0 })
      else if (before !== undefined) output.note(`${name}: nothing needs you any more`)
    }
  }
}

/** `docs: downloaded Letters/a.txt (12 kB)` */
function actionLine({ folder, text, path, bytes, result, note, verb }: Told): string {
  const size = bytes > 0 && (verb === 'upload' || verb === 'download') ? ` (${formatBytes(bytes)})` : ''
  const what = text.charAt(0).toLowerCase() + text.slice(1)
  const why = note === null ? '' : `: ${note}`
  return result === 'failed'
    ? `${folder}: FAILED: ${what} ${path}${why}`
    : `${folder}: ${what} ${path}${size}`
}

/** `docs: 1,200 downloaded (34 MB), 3 moved here` */
function countLines(actions: readonly Told[]): string[] {
  const byFolder = Map.groupBy(actions, ({ folder }) => folder)
  return [...byFolder].map(([folder, some]) => {
    const parts = [...Map.groupBy(some, ({ text }) => text)].map(([text, equal]) => {
      const bytes = equal.reduce((sum, one) => sum + one.bytes, 0)
      const size = bytes > 0 ? ` (${formatBytes(bytes)})` : ''
      return `${formatCount(equal.length)} ${text.charAt(0).toLowerCase()}${text.slice(1)}${size}`
    })
    return `${folder}: ${parts.join(', ')}`
  })
}
