/**
 * The people on both sides: they do what a history says, at once, and it is written down what they saved and what
 * they took away themselves. What one saves is different each time ("w17 …"), so that it is known again anywhere.
 */
import {
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { OWN_FOLDER } from '../../src/apps/file-sync/filter.ts'
import { isWithin } from '../../src/sim/onedrive/item.ts'
import type { SimDrive } from '../../src/sim/onedrive/sim-drive.ts'
import type { Act, Side, Size } from './history.ts'

/** Path → bytes; undefined for a folder. */
export type Tree = Map<string, Buffer | undefined>

const LARGE_BYTES = 4 * 1024 * 1024 + 70_000
/** What the simulated service adds to documents. */
const REWRITTEN = '<!-- kept by the service -->'

export function contentOf(n: number, size: Size): Buffer {
  if (size === 'empty') return Buffer.alloc(0)
  const text = Buffer.from(`w${n} ${'saved by someone '.repeat(1 + (n % 3))}`)
  return size === 'small' ? text : Buffer.concat([text, Buffer.alloc(LARGE_BYTES, n)])
}

/** As they were saved, whatever the service added. */
export function plain(bytes: Buffer): Buffer {
  if (bytes.length > LARGE_BYTES * 2) return bytes
  const at = bytes.indexOf(REWRITTEN)
  return at < 0 || at + REWRITTEN.length !== bytes.length ? bytes : bytes.subarray(0, at)
}

export class People {
  readonly #root: string
  readonly #drive: SimDrive
  /** What was saved, as text: by whom and where. */
  readonly saved = new Map<string, string>()
  /** What somebody deleted or replaced where he saw it. */
  readonly removed = new Map<string, string>()
  #writes = 0

  constructor(root: string, drive: SimDrive) {
    this.#root = root
    this.#drive = drive
  }

  /** False: it could not be done, and nothing was. */
  act(act: Act): boolean {
    switch (act.do) {
      case 'write':
      case 'save':
        return this.#write(act)
      case 'both':
        return this.#both(act.path)
      case 'touch':
        return this.#touch(act)
      case 'mkdir':
        return this.#mkdir(act)
      case 'delete':
        return this.#delete(act)
      case 'move':
        return this.#move(act)
      case 'swap':
        return this.#swap(act)
      case 'copy':
        return this.#copy(act)
      default:
        return false
    }
  }

  here(): Tree {
    return treeOf(this.#root)
  }

  there(): Tree {
    const tree: Tree = new Map()
    for (const item of this.#drive.dump().items) {
      const path = item.path.replace(/^\//, '')
      tree.set(path, item.kind === 'folder' ? undefined : this.#drive.bytesOf(item.contentKey!)!)
    }
    return tree
  }

  #write({ do: how, side, path, size }: Extract<Act, { size: Size }>): boolean {
    if (this.#type(side, path) === 'folder' || !this.#isRoomFor(side, path)) return false
    this.#put(side, path, this.#next(size, `${side} ${path}`), how === 'save')
    return true
  }

  #both(path: string): boolean {
    for (const side of ['here', 'there'] as const) {
      if (this.#type(side, path) === 'folder' || !this.#isRoomFor(side, path)) return false
    }
    const content = this.#next('small', `both ${path}`)
    this.#put('here', path, content, false)
    this.#put('there', path, content, false)
    return true
  }

  #next(size: Size, where: string): Buffer {
    this.#writes += 1
    const content = contentOf(this.#writes, size)
    if (size !== 'empty') this.saved.set(content.toString('latin1'), where)
    return content
  }

  /** `isReplaced`: as editors save, with a new file that takes the name. */
  #put(side: Side, path: string, content: Buffer, isReplaced: boolean): void {
    this.#remove(side, path, 'replaced')
    if (side === 'there') {
      this.#drive.device.write(path, content)
      return
    }
    mkdirSync(dirname(this.#at(path)), { recursive: true })
    if (!isReplaced) {
      writeFileSync(this.#at(path), content)
      return
    }
    const draft = join(dirname(this.#at(path)), '.draft.tmp')
    writeFileSync(draft, content)
    renameSync(draft, this.#at(path))
  }

  #touch({ side, path }: Extract<Act, { size: Size }>): boolean {
    if (this.#type(side, path) !== 'file') return false
    const at = new Date(Date.UTC(2020, 0, 1) + this.#writes * 1000)
    if (side === 'here') utimesSync(this.#at(path), at, at)
    else this.#drive.device.setTimes(path, { modifiedMs: at.getTime() })
    return true
  }

  #mkdir({ side, path }: Extract<Act, { size: Size }>): boolean {
    if (this.#type(side, path) !== undefined || !this.#isRoomFor(side, path)) return false
    if (side === 'here') mkdirSync(this.#at(path), { recursive: true })
    else this.#drive.device.mkdir(path)
    return true
  }

  #delete({ side, path }: Extract<Act, { size: Size }>): boolean {
    if (this.#type(side, path) === undefined) return false
    this.#remove(side, path, 'deleted')
    if (side === 'here') rmSync(this.#at(path), { recursive: true })
    else this.#drive.device.delete(path)
    return true
  }

  #move({ side, path, to }: { side: Side; path: string; to: string }): boolean {
    const type = this.#type(side, path)
    if (type === undefined || isBelow(to, path) || !this.#isRoomFor(side, to)) return false
    if (side === 'there') {
      const { device, state } = this.#drive
      const [item, there] = [device.item(path), state.at(to)]
      if (there && there !== item) return false
      const names = to.split('/')
      const above = names.slice(0, -1).map((_, depth) => state.at(names.slice(0, depth + 1).join('/')))
      if (above.includes(item)) return false
      device.move(path, to)
      return true
    }
    if (this.#type('here', to) !== undefined) return false
    mkdirSync(dirname(this.#at(to)), { recursive: true })
    renameSync(this.#at(path), this.#at(to))
    return true
  }

  #swap({ side, path, to }: { side: Side; path: string; to: string }): boolean {
    if (path === to || isBelow(path, to) || isBelow(to, path)) return false
    if (this.#type(side, path) === undefined || this.#type(side, to) === undefined) return false
    if (side === 'there' && this.#drive.device.item(path) === this.#drive.device.item(to)) return false
    const aside = `${path}-aside`
    return (
      this.#move({ side, path, to: aside }) &&
      this.#move({ side, path: to, to: path }) &&
      this.#move({ side, path: aside, to })
    )
  }

  #copy({ side, path, to }: { side: Side; path: string; to: string }): boolean {
    if (this.#type(side, path) !== 'file' || this.#type(side, to) !== undefined) return false
    if (!this.#isRoomFor(side, to)) return false
    const bytes = side === 'here' ? readFileSync(this.#at(path)) : this.#drive.device.read(path)!
    if (side === 'there') this.#drive.device.write(to, bytes)
    else {
      mkdirSync(dirname(this.#at(to)), { recursive: true })
      writeFileSync(this.#at(to), bytes)
    }
    return true
  }

  /** Everything that he sees there. */
  #remove(side: Side, path: string, how: string): void {
    const note = (bytes: Buffer | undefined): void => {
      if (bytes) this.removed.set(plain(bytes).toString('latin1'), `${how} ${side} ${path}`)
    }
    const type = this.#type(side, path)
    if (side === 'here') {
      if (type === 'file') note(readFileSync(this.#at(path)))
      if (type === 'folder') for (const bytes of treeOf(this.#at(path)).values()) note(bytes)
      return
    }
    const { state } = this.#drive
    const item = state.at(path)
    if (!item) return
    for (const one of state.items()) {
      if (one.content && isWithin(one, item)) note(this.#drive.bytesOf(one.content.key))
    }
  }

  #type(side: Side, path: string): 'file' | 'folder' | undefined {
    if (side === 'there') {
      const item = this.#drive.state.at(path)
      return item && (item.children ? 'folder' : 'file')
    }
    try {
      return lstatSync(this.#at(path)).isDirectory() ? 'folder' : 'file'
    } catch {
      return undefined
    }
  }

  /** Nothing on the way to it is a file. */
  #isRoomFor(side: Side, path: string): boolean {
    const names = path.split('/')
    return names
      .slice(0, -1)
      .every((_, depth) => this.#type(side, names.slice(0, depth + 1).join('/')) !== 'file')
  }

  #at(path: string): string {
    return join(this.#root, path)
  }
}

function isBelow(path: string, folder: string): boolean {
  return path === folder || path.startsWith(`${folder}/`)
}

export function treeOf(root: string, folder = ''): Tree {
  const tree: Tree = new Map()
  for (const name of readdirSync(join(root, folder)).sort()) {
    if (folder === '' && name === OWN_FOLDER) continue
    const path = folder === '' ? name : `${folder}/${name}`
    if (lstatSync(join(root, path)).isDirectory()) {
      tree.set(path, undefined)
      for (const [below, bytes] of treeOf(root, path)) tree.set(below, bytes)
    } else tree.set(path, readFileSync(join(root, path)))
  }
  return tree
}
