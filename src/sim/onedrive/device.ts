/** The other device: what somebody does to the same drive elsewhere, by path, at once and without HTTP. */
import { UsageError } from '../../base/errors.ts'
import { bytesOfContent, type ContentInput } from './content.ts'
import type { ConflictBehavior, Drive, FileTimes } from './drive.ts'
import { type Item, itemPath } from './item.ts'

export class Device {
  readonly #drive: Drive

  constructor(drive: Drive) {
    this.#drive = drive
  }

  /** Makes or replaces a file; folders on the way are made. */
  write(path: string, input: ContentInput, options: FileTimes & { conflict?: ConflictBehavior } = {}): Item {
    const { conflict = 'replace', ...times } = options
    const { folder, name } = this.#place(path)
    const content = this.#drive.addContent(input)
    return this.#drive.putFile({ parent: folder, name, content, conflict, times }).item
  }

  /** Other bytes in a file that is there. */
  edit(path: string, input: ContentInput, times: FileTimes = {}): Item {
    return this.#drive.setContent(this.item(path), this.#drive.addContent(input), times)
  }

  append(path: string, text: string): Item {
    const item = this.item(path)
    const before = item.content && bytesOfContent(item.content)
    if (!before) throw new UsageError(`The bytes of ${path} are not kept.`)
    return this.edit(path, Buffer.concat([before, Buffer.from(text)]))
  }

  /** Also how a folder moves, with all that is in it. */
  move(path: string, to: string, options: { conflict?: ConflictBehavior } = {}): Item {
    const item = this.item(path)
    const { folder, name } = this.#place(to)
    return this.#drive.update(item, { parent: folder, name, ...options })
  }

  /** In the same folder; only the case may differ. */
  rename(path: string, name: string, options: { conflict?: ConflictBehavior } = {}): Item {
    return this.#drive.update(this.item(path), { name, ...options })
  }

  delete(path: string): Item {
    const item = this.item(path)
    this.#drive.delete(item)
    return item
  }

  /** What is there already stays as it is. */
  mkdir(path: string): Item {
    let folder = this.#drive.root
    for (const name of path.split('/')) {
      if (name === '') continue
      const there = this.#drive.child(folder, name)
      folder = there ?? this.#drive.createFolder(folder, name).item
      if (!folder.children) throw new UsageError(`${itemPath(folder)} is a file.`)
    }
    return folder
  }

  /** A OneNote notebook: neither a file nor a folder. */
  notebook(path: string): Item {
    const { folder, name } = this.#place(path)
    return this.#drive.createFolder(folder, name, { kind: 'package' }).item
  }

  /** "Add shortcut to My files": of something in another drive. */
  shortcut(path: string, to: { drive: Drive; item: Item }): Item {
    const { folder, name } = this.#place(path)
    const { item } = this.#drive.createFolder(folder, name, { kind: 'package' })
    item.remote = to
    return item
  }

  setTimes(path: string, times: FileTimes): Item {
    return this.#drive.update(this.item(path), { times })
  }

  /** The last one that was deleted from this path. */
  restore(path: string, options: { conflict?: ConflictBehavior } = {}): Item {
    const entries = [...this.#drive.recycleBin.values()].reverse()
    const entry = entries.find((one) => one.path === trimmed(path))
    if (!entry) throw new UsageError(`Nothing was deleted from ${path}.`, { code: 'sim-not-found' })
    return this.#drive.restore(entry.item.id, options)
  }

  emptyRecycleBin(): number {
    return this.#drive.purge()
  }

  /** Also the bytes of a file that is not there any more are found by the keys of the dump. */
  read(path: string): Buffer | undefined {
    const { content } = this.item(path)
    return content && bytesOfContent(content)
  }

  has(path: string): boolean {
    return this.#drive.at(path) !== undefined
  }

  item(path: string): Item {
    const item = this.#drive.at(path)
    if (item) return item
    throw new UsageError(`There is nothing at ${path}.`, { code: 'sim-not-found' })
  }

  #place(path: string): { folder: Item; name: string } {
    const whole = trimmed(path)
    const slash = whole.lastIndexOf('/')
    return { folder: this.mkdir(whole.slice(0, Math.max(0, slash))), name: whole.slice(slash + 1) }
  }
}

function trimmed(path: string): string {
  return path.replace(/^\/+|\/+$/g, '')
}
