/** A drive with all that the simulator knows about it: state, quirks, sessions, the other device. */
import { type Random, seededRandom } from '../../base/random.ts'
import { bytesOfContent, type Content } from './content.ts'
import { Device } from './device.ts'
import { Drive } from './drive.ts'
import { type DriveDump, dumpDrive } from './drive-dump.ts'
import type { DriveType, Item } from './item.ts'
import { noQuirks, type Quirks, quirkSwitches } from './quirks.ts'
import type { Share, ShareRole } from './shares.ts'
import { UploadSessions, type UploadTarget } from './upload-sessions.ts'

export type ResyncKind = 'resyncChangesApplyDifferences' | 'resyncChangesUploadDifferences'

export type SimDriveOptions = {
  /** What the simulator calls it; the account unless there are several. */
  name: string
  account: string
  type: DriveType
  /** The site of SharePoint of which it is a library. */
  site?: string
  seed: number
  now: () => number
  quotaBytes?: number
  keepBytesMax?: number
  sessionMs?: number
  quirks?: Partial<Quirks>
}

/** What a service does to a document that it understands. */
const OFFICE = /\.(?:docx|xlsx|pptx)$/
const REWRITTEN = Buffer.from('<!-- kept by the service -->')

export class SimDrive {
  readonly name: string
  readonly account: string
  readonly site: string | undefined
  readonly state: Drive
  readonly device: Device
  readonly sessions: UploadSessions
  readonly quirks: Quirks = noQuirks()
  /** Whom its owner has let in, and where. */
  readonly shares: Share[] = []
  /** Tokens of an earlier one are too old. */
  deltaGeneration = 1
  /** So many uploads to come are damaged on their way, each in its own way. */
  damagedUploads = 0
  resyncKind: ResyncKind = 'resyncChangesApplyDifferences'

  constructor(options: SimDriveOptions) {
    this.name = options.name
    this.account = options.account
    this.site = options.site
    const random = seededRandom(options.seed)
    this.state = new Drive({
      type: options.type,
      owner: options.account,
      now: options.now,
      random,
      id: newDriveId(options.type, random),
      ...(options.quotaBytes === undefined ? {} : { quotaBytes: options.quotaBytes }),
      ...(options.keepBytesMax === undefined ? {} : { keepBytesMax: options.keepBytesMax }),
    })
    this.device = new Device(this.state)
    this.sessions = new UploadSessions({
      drive: this.state,
      quirks: this.quirks,
      random: seededRandom(options.seed ^ 0x5e55),
      commit: (target, content) => this.commit(target, content),
    })
    if (options.sessionMs !== undefined) this.sessions.sessionMs = options.sessionMs
    this.quirks.deltaPaths = options.type === 'personal'
    this.quirks.folderDelta = options.type === 'personal'
    if (options.quirks) this.setQuirks(options.quirks)
  }

  get id(): string {
    return this.state.id
  }

  /** What is left out stays as it is. */
  setQuirks(quirks: Partial<Quirks>): void {
    Object.assign(this.quirks, quirkSwitches.partial().parse(quirks))
  }

  /** Every delta token so far is too old: the next one is answered with 410. */
  expireDelta(kind: ResyncKind = 'resyncChangesApplyDifferences'): void {
    this.deltaGeneration += 1
    this.resyncKind = kind
  }

  /** Lets another account in, or in another way than before. */
  share(path: string, account: string, role: Exclude<ShareRole, 'none'> = 'write'): Item {
    const item = this.device.item(path)
    this.letIn({ item, account, role })
    return item
  }

  letIn(share: Share): void {
    share.item.isShared = true
    const there = this.shares.find(({ item, account }) => item === share.item && account === share.account)
    if (there) there.role = share.role
    else this.shares.push(share)
    this.state.noteShared(share.item)
  }

  /** The owner has thought better of it. */
  unshare(path: string, account: string): void {
    this.letIn({ item: this.device.item(path), account, role: 'none' })
  }

  countItems(): { files: number; folders: number } {
    let files = 0
    let folders = -1 // the root is none
    for (const { kind } of this.state.items()) {
      if (kind === 'file') files += 1
      else folders += 1
    }
    return { files, folders }
  }

  dump(): DriveDump {
    return dumpDrive(this.state)
  }

  /** By the key of the dump; undefined where nobody saved it or its bytes were not kept. */
  bytesOf(key: string): Buffer | undefined {
    const content = this.state.contents.get(key)
    return content && bytesOfContent(content)
  }

  /** An upload becomes a file, as the service sees fit. */
  commit(target: UploadTarget, content: Content): { item: Item; isNew: boolean } {
    const { parent, name, conflict, times } = target
    const isOffice = OFFICE.test(name.toLowerCase())
    const arrived = this.damagedUploads > 0 ? this.#damaged(content) : content
    const kept = this.quirks.rewritesUploads && isOffice ? this.#rewritten(arrived) : arrived
    if (!target.item) return this.state.putFile({ parent, name, content: kept, conflict, times })
    if (target.item.deleted !== 'no') {
      // What the session was made for is gone; the upload is a file of its own.
      return this.state.putFile({ parent, name, content: kept, conflict: 'replace', times })
    }
    return { item: this.state.setContent(target.item, kept, times), isNew: false }
  }

  /** After the answer has been made: the service looks at the document later. */
  rewriteLater(item: Item): void {
    if (!this.quirks.rewritesUploadsLater || !OFFICE.test(item.key) || !item.content) return
    this.state.setContent(item, this.#rewritten(item.content), { modifiedMs: item.fsModifiedMs })
  }

  #damaged(content: Content): Content {
    const bytes = Buffer.from(bytesOfContent(content) ?? Buffer.alloc(0))
    bytes.fill(this.damagedUploads--, 0, 1)
    return this.state.addContent(bytes)
  }

  #rewritten(content: Content): Content {
    const bytes = bytesOfContent(content) ?? Buffer.alloc(0)
    return bytes.includes(REWRITTEN) ? content : this.state.addContent(Buffer.concat([bytes, REWRITTEN]))
  }
}

/** Of Personal: 16 hexadecimal digits, here always with a zero in front, which the service likes to lose. */
function newDriveId(type: DriveType, random: Random): string {
  const digits = (): string =>
    Math.floor(random() * 2 ** 32)
      .toString(16)
      .padStart(8, '0')
  if (type === 'personal') return `0c${digits()}${digits()}`.slice(0, 16)
  return `b!${Buffer.from(digits() + digits() + digits(), 'latin1').toString('base64url')}`
}
