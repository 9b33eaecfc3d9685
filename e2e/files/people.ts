/**
 * The people on both sides: they do what a history says, at once, and it is written down what they saved and what
 * they took away themselves. What one saves is different each time ("w17 …"), so that it is known again anywhere.
 */
import { execFileSync } from 'node:child_process'
import {
  lstatSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { ownPath } from '../../src/apps/files/local/root.ts'
import { IGNORE_FILE, OWN_FOLDER } from '../../src/apps/files/names.ts'
import { systemClock } from '../../src/base/clock.ts'
import { isWithin } from '../../src/sim/onedrive/item.ts'
import type { SimDrive } from '../../src/sim/onedrive/sim-drive.ts'
import { type Tree, treeOf } from './disk-tree.ts'
import type { Act, Side, Size } from './history.ts'
import { linkAt, linksIn, OtherDisk } from './links.ts'
import { diskPath, isRaw, takesNoPart } from './odd-names.ts'

const EDITED_BYTES_MIN = 12
const LARGE_BYTES = 4 * 1024 * 1024 + 70_000
/** More than the guard lets pass at once. */
const MANY = 24
/** Nobody saves in the very millisecond of somebody else. */
const APART_MS = 1_500
const RECORDS = 8
const RECORD_BYTES = 160
/** What the simulated service adds to documents. */
const REWRITTEN = '<!-- kept by the service -->'

export function seededContent(n: number, size: Size): Buffer {
  if (size === 'empty') return Buffer.alloc(0)
  const text = Buffer.from(`w${n} ${'saved by someone '.repeat(1 + (n % 3))}`)
  if (size === 'records') return Buffer.concat(Array.from({ length: RECORDS }, (_, at) => recordOf(n, at)))
  return size === 'small' ? text : Buffer.concat([text, Buffer.alloc(LARGE_BYTES, n)])
}

function recordOf(n: number, at: number): Buffer {
  return Buffer.from(`w${n} record ${at} `.padEnd(RECORD_BYTES, `${at}.`))
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
  /** What somebody deleted or replaced where he saw it, and on which side. */
  readonly removed = new Map<string, Set<Side>>()
  #writes = 0
  /** Files of OneDrive whose place here a link took, by their ids. */
  readonly hidden = new Map<string, { path: string; content: string }>()
  readonly #otherDisk: OtherDisk
  #backup: Backup | undefined
  #restored = 0
  /** What was overwritten last, by path. */
  readonly #overwritten = new Map<string, { side: Side; before: Buffer; after: Buffer }>()
  /** Keeps a time. */
  readonly #mark: string

  constructor(root: string, drive: SimDrive) {
    this.#root = root
    this.#drive = drive
    this.#otherDisk = new OtherDisk(root)
    this.#mark = `${root}-mark`
  }

  /** False: it could not be done, and nothing was. */
  act(act: Act): boolean {
    const paths = 'path' in act ? [act.path, 'to' in act ? act.to : ''] : []
    const isOnlyHere = 'side' in act && act.side === 'here' && act.do !== 'link' && act.do !== 'alias'
    if (!isOnlyHere && paths.some(isRaw)) return false
    switch (act.do) {
      case 'keep':
        this.#backup = new Backup(this.#root)
        return true
      case 'restore':
        return this.#restore()
      case 'many':
        return this.#many(act)
      case 'overwrite':
        return this.#overwrite(act)
      case 'write':
      case 'save':
        return this.#write(act)
      case 'both':
        return this.#both(act.path)
      case 'edit':
        return this.#edit(act.path)
      case 'exchange':
        return this.#exchange(act)
      case 'rules':
        return this.#say(act.side, act.pattern)
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
      case 'link':
        return this.#link(act.path)
      case 'unlink':
        return this.#unlink(act.path)
      case 'alias':
        return this.#alias(act)
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
    if (!this.#isSaveable(side, path)) return false
    this.#put(side, path, this.#next(size, `${side} ${path}`), how === 'save')
    return true
  }

  /** Unseen: in place, with as many bytes, and the time that it had to the nanosecond. */
  #edit(path: string): boolean {
    if (isRaw(path)) return false
    const before = this.#type('here', path) === 'file' ? readFileSync(this.#at(path)) : undefined
    if (!before || before.length < EDITED_BYTES_MIN) return false
    this.#writes += 1
    const edited = Buffer.from(before)
    edited.write(`w${this.#writes} `.padEnd(EDITED_BYTES_MIN, 'e'))
    this.#remove('here', path)
    this.saved.set(textOf(edited), `here ${path}`)
    execFileSync('touch', ['-r', join(this.#root, path), this.#mark])
    writeFileSync(this.#at(path), edited, { flag: 'r+' })
    execFileSync('touch', ['-r', this.#mark, join(this.#root, path)])
    return true
  }

  /** The first record becomes the last. */
  #exchange({ side, path }: { side: Side; path: string }): boolean {
    if (this.#type(side, path) !== 'file') return false
    const before = side === 'here' ? readFileSync(this.#at(path)) : this.#drive.device.read(path)!
    if (before.length !== RECORDS * RECORD_BYTES) return false
    const content = Buffer.concat([before.subarray(RECORD_BYTES), before.subarray(0, RECORD_BYTES)])
    this.#put(side, path, content, false)
    this.saved.set(textOf(content), `${side} ${path}`)
    return true
  }

  /** What takes no part, as the folder's own file says. */
  #say(side: Side, pattern: string): boolean {
    if (!this.#isSaveable(side, IGNORE_FILE)) return false
    this.#writes += 1
    const content = Buffer.from(`# w${this.#writes}\n${pattern === 'none' ? '' : `${pattern}\n`}`)
    this.saved.set(textOf(content), `${side} rules`)
    this.#put(side, IGNORE_FILE, content, false)
    return true
  }

  /** Everything takes part again. */
  dropRules(): void {
    for (const side of ['here', 'there'] as const)
      this.#delete({ do: 'delete', side, path: IGNORE_FILE, size: 'small' })
  }

  #both(path: string): boolean {
    if (!this.#isSaveable('here', path) || !this.#isSaveable('there', path)) return false
    const content = this.#next('small', `both ${path}`)
    this.#put('here', path, content, false)
    this.#put('there', path, content, false)
    return true
  }

  #next(size: Size, where: string): Buffer {
    this.#writes += 1
    const content = seededContent(this.#writes, size)
    if (size !== 'empty') this.saved.set(content.toString('latin1'), where)
    return content
  }

  /** `isReplaced`: as editors save, with a new file that takes the name. */
  #put(side: Side, path: string, content: Buffer, isReplaced: boolean): void {
    this.#remove(side, path)
    if (side === 'there') {
      this.#drive.device.write(path, content, { modifiedMs: systemClock.now() - APART_MS })
      return
    }
    this.#makeRoom(path)
    if (!isReplaced) {
      writeFileSync(this.#at(path), content)
      return
    }
    const draft = this.#at(join(dirname(path), '.draft.tmp'))
    writeFileSync(draft, content)
    renameSync(draft, this.#at(path))
  }

  #makeRoom(path: string): void {
    mkdirSync(this.#at(dirname(path)), { recursive: true })
  }

  #many({ side, path }: { side: Side; path: string }): boolean {
    const paths = Array.from({ length: MANY }, (_, n) => `${path}/m${n}`)
    if (!paths.every((one) => this.#isSaveable(side, one))) return false
    for (const one of paths) this.#put(side, one, this.#next('small', `${side} ${one}`), false)
    return true
  }

  /** Everything right in a folder gets another content at once. */
  #overwrite({ side, path }: { side: Side; path: string }): boolean {
    const tree = side === 'here' ? this.here() : this.there()
    const files = [...tree].filter(([one, bytes]) => bytes && dirname(one) === path && !isRaw(one))
    if (files.length === 0) return false
    this.#overwritten.clear()
    for (const [one, before] of files) {
      const after = this.#next('small', `${side} ${one}`)
      this.#put(side, one, after, false)
      this.#overwritten.set(one, { side, before: before!, after })
    }
    return true
  }

  /** Who overwrote them says no when he is asked: what nobody has touched since is as it was. */
  takeBack(): Side | undefined {
    let taken: Side | undefined
    for (const [path, { side, before, after }] of this.#overwritten) {
      const now = this.#type(side, path) === 'file' ? this.#bytes(side, path) : undefined
      if (!now?.equals(after)) continue
      this.#put(side, path, before, false)
      this.#keep(side, textOf(before))
      taken = side
    }
    this.#overwritten.clear()
    return taken
  }

  #bytes(side: Side, path: string): Buffer {
    return side === 'here' ? readFileSync(this.#at(path)) : this.#drive.device.read(path)!
  }

  /** Whoever puts an old copy in the place of the folder takes away what is only here, and nothing else. */
  #restore(): boolean {
    if (!this.#backup) return false
    const there = new Set([...this.there().values()].flatMap((bytes) => (bytes ? [textOf(bytes)] : [])))
    const trash = treeOf(ownPath({ path: this.#root }, 'trash'))
    for (const bytes of [...this.here().values(), ...trash.values()]) {
      const text = bytes && textOf(bytes)
      if (text !== undefined && !there.has(text)) this.#take('here', text)
    }
    this.#restored += 1
    this.#backup.replace(this.#root, `${this.#root}-before-${this.#restored}`)
    for (const bytes of this.#backup.tree.values()) {
      const text = bytes && textOf(bytes)
      if (text !== undefined) this.#keep('here', text)
    }
    return true
  }

  /** Its owners give other names to what takes no part because of its name; true where there was something. */
  nameAll(): boolean {
    const [here, there] = [oddNames(this.here()), oddNames(this.there())]
    for (const [n, path] of here.entries())
      renameSync(this.#at(path), this.#at(join(dirname(path), `named-here-${n}`)))
    for (const [n, path] of there.entries())
      this.#drive.device.move(path, join(dirname(path), `named-there-${n}`))
    this.hidden.clear()
    return here.length + there.length > 0
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
    const type = this.#type(side, path)
    if (type === undefined || type === 'link') return false
    this.#remove(side, path)
    if (side === 'here') rmSync(this.#at(path), { recursive: true })
    else this.#drive.device.delete(path)
    return true
  }

  #move({ side, path, to }: { side: Side; path: string; to: string }): boolean {
    const type = this.#type(side, path)
    if (type === undefined || type === 'link' || isBelow(to, path) || !this.#isRoomFor(side, to)) return false
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
    const contents = new Set(this.#contents(path).map(textOf))
    const isHidden = !takesNoPart(path) && takesNoPart(to)
    if (isHidden) this.#hide(path, (content) => contents.has(content))
    else if (!takesNoPart(to))
      for (const [id, { content }] of this.hidden) if (contents.has(content)) this.hidden.delete(id)
    this.#makeRoom(to)
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
      this.#makeRoom(to)
      writeFileSync(this.#at(to), bytes)
    }
    return true
  }

  #link(path: string): boolean {
    const type = this.#type('here', path)
    if (type !== 'file' && type !== 'folder') return false
    const here = new Set(this.#contents(path).map(textOf))
    this.#hide(path, (content) => here.has(content))
    this.#otherDisk.take(path)
    return true
  }

  #unlink(path: string): boolean {
    const behind = this.#type('here', path) === 'link' ? this.#otherDisk.behind(path) : undefined
    if (behind === undefined) return false
    const back = new Set(this.#otherDisk.contents(behind).map(textOf))
    for (const [id, { content }] of this.hidden) if (back.has(content)) this.hidden.delete(id)
    return this.#otherDisk.bringBack(path)
  }

  /** Links are gone, and everything is where they were. */
  unlinkAll(): void {
    this.hidden.clear()
    this.#otherDisk.bringAllBack()
  }

  /** From now on they are not what they lead to. */
  leaveLinks(): void {
    for (const path of linksIn(this.#root)) this.#hide(path, () => true)
  }

  #hide(path: string, isSame: (content: string) => boolean): void {
    const top = this.#drive.state.at(path)
    if (!top) return
    for (const item of this.#drive.state.items()) {
      if (!item.content || !isWithin(item, top)) continue
      const content = textOf(this.#drive.bytesOf(item.content.key)!)
      if (isSame(content)) this.hidden.set(item.id, { path, content })
    }
  }

  #alias({ path, to }: { path: string; to: string }): boolean {
    if (this.#type('here', path) === undefined || this.#type('here', to) !== undefined) return false
    if (!this.#isRoomFor('here', to)) return false
    this.#makeRoom(to)
    symlinkSync(this.#at(path), this.#at(to))
    return true
  }

  #take(side: Side, text: string): void {
    this.removed.set(text, (this.removed.get(text) ?? new Set()).add(side))
  }

  /** He has it again; what the other one thought of it stays. */
  #keep(side: Side, text: string): void {
    const sides = this.removed.get(text)
    sides?.delete(side)
    if (sides?.size === 0) this.removed.delete(text)
  }

  /** Everything that he sees there. */
  #remove(side: Side, path: string): void {
    const note = (bytes: Buffer | undefined): void => {
      if (bytes) this.#take(side, textOf(bytes))
    }
    if (side === 'here') {
      if (this.#type(side, path) === undefined) return
      for (const bytes of this.#contents(path)) note(bytes)
      return
    }
    const { state } = this.#drive
    const item = state.at(path)
    if (!item) return
    for (const one of state.items()) {
      if (one.content && isWithin(one, item)) note(this.#drive.bytesOf(one.content.key))
    }
  }

  /** Nobody goes through a link. */
  #type(side: Side, path: string): 'file' | 'folder' | 'link' | undefined {
    if (side === 'there') {
      const item = this.#drive.state.at(path)
      return item && (item.children ? 'folder' : 'file')
    }
    if (foldersAbove(path).some((folder) => linkAt(join(this.#root, folder)) !== undefined)) return undefined
    try {
      const stats = lstatSync(this.#at(path))
      if (stats.isSymbolicLink()) return 'link'
      return stats.isDirectory() ? 'folder' : 'file'
    } catch {
      return undefined
    }
  }

  #isSaveable(side: Side, path: string): boolean {
    const type = this.#type(side, path)
    return type !== 'folder' && type !== 'link' && this.#isRoomFor(side, path)
  }

  /** Nothing on the way to it is a file or a link. */
  #isRoomFor(side: Side, path: string): boolean {
    return foldersAbove(path).every((folder) => {
      const type = this.#type(side, folder)
      return type === undefined || type === 'folder'
    })
  }

  /** Of all files there. */
  #contents(path: string): Buffer[] {
    return this.#otherDisk.contents(join(this.#root, path))
  }

  #at(path: string): string | Buffer {
    return diskPath(join(this.#root, path))
  }
}

/** Outer ones only: what is in them moves along. */
function oddNames(tree: Tree): string[] {
  return [...tree.keys()].filter((path) => takesNoPart(path) && !takesNoPart(dirname(path)))
}

function foldersAbove(path: string): string[] {
  const names = path.split('/')
  return names.slice(0, -1).map((_, depth) => names.slice(0, depth + 1).join('/'))
}

function textOf(bytes: Buffer): string {
  return plain(bytes).toString('latin1')
}

function isBelow(path: string, folder: string): boolean {
  return path === folder || path.startsWith(`${folder}/`)
}

const MARKER = 'root.json'

/** A copy of the whole folder that somebody keeps, and puts in its place later: with the marker, and with old times. */
class Backup {
  readonly tree: Tree
  readonly #times: Map<string, Date>
  readonly #marker: Buffer

  constructor(root: string) {
    this.tree = treeOf(root)
    const files = [...this.tree].filter(([, bytes]) => bytes !== undefined)
    this.#times = new Map(files.map(([path]) => [path, lstatSync(diskPath(join(root, path))).mtime]))
    this.#marker = readFileSync(join(root, OWN_FOLDER, MARKER))
  }

  /** What was there is elsewhere then. */
  replace(root: string, elsewhere: string): void {
    renameSync(root, elsewhere)
    for (const own of ['trash', 'partial']) mkdirSync(join(root, OWN_FOLDER, own), { recursive: true })
    for (const [path, bytes] of this.tree) {
      const at = diskPath(join(root, path))
      if (bytes === undefined) {
        mkdirSync(at, { recursive: true })
        continue
      }
      mkdirSync(diskPath(dirname(join(root, path))), { recursive: true })
      writeFileSync(at, bytes)
      utimesSync(at, this.#times.get(path)!, this.#times.get(path)!)
    }
    // Last: until then it is not the folder.
    writeFileSync(join(root, OWN_FOLDER, MARKER), this.#marker)
  }
}
