/** The control API of Google Drive, under /control/drive: people, documents, sharing, refusals, and who may see what. */
import { z } from 'zod'
import type { Clock } from '../../base/clock.ts'
import { UsageError } from '../../base/errors.ts'
import { parse } from '../control.ts'
import type { Quota } from '../quota.ts'
import { jsonAnswer, type SimAnswer, type SimCall } from '../server.ts'
import type { Counts } from './counts.ts'
import { type Item, isTrashed } from './item.ts'
import type { Listing } from './listing.ts'
import type { WhoSees } from './oracle.ts'
import type { StandingRefusal } from './routes.ts'
import type { DriveWorld } from './world.ts'

const id = z.string().min(1)
const text = z.string()
const ms = z.number().int()
const role = z.enum(['owner', 'organizer', 'fileOrganizer', 'writer', 'commenter', 'reader'])
const by = text.optional()
const content = { text: text.optional(), base64: text.optional() }
const place = { name: id, parent: id.optional(), by, createdMs: ms.optional(), modifiedMs: ms.optional() }
const inputs = {
  user: z.strictObject({ address: id, name: text.optional() }),
  group: z.strictObject({ address: id, name: text.optional(), members: z.array(text).optional() }),
  members: z.strictObject({ address: id, members: z.array(text) }),
  drive: z.strictObject({ name: id, members: z.array(z.strictObject({ email: id, role })).optional() }),
  folder: z.strictObject(place),
  file: z.strictObject({
    ...place,
    ...content,
    mimeType: text.optional(),
    description: text.optional(),
    resourceKey: text.optional(),
  }),
  shortcut: z.strictObject({ ...place, target: id }),
  share: z.strictObject({
    id,
    type: z.enum(['user', 'group', 'domain', 'anyone']),
    role,
    email: text.optional(),
    domain: text.optional(),
    isDiscoverable: z.boolean().optional(),
    expiresMs: ms.optional(),
  }),
  unshare: z.strictObject({ id, whose: id }),
  edit: z.strictObject({ id, ...content, by, modifiedMs: ms.optional() }),
  rename: z.strictObject({ id, name: id, by }),
  move: z.strictObject({ id, parent: id, by }),
  limit: z.strictObject({ id, isLimited: z.boolean() }),
  open: z.strictObject({ id, address: id }),
  id: z.strictObject({ id, by }),
  refuse: z.strictObject({
    id,
    status: z.number().int().min(400).max(599).optional(),
    reason: text.optional(),
    message: text.optional(),
    methods: z.array(text).optional(),
  }),
  settings: z.strictObject({ incompleteSearch: z.boolean().optional(), tellsBelow: z.boolean().optional() }),
  quota: z.strictObject({
    unitsPerMinute: z.number().positive().nullable().optional(),
    prices: z.record(z.string(), z.number().min(0)).optional(),
    shape: z.enum(['user403', 'rate403', 'exhausted429', 'mixed']).optional(),
    retryAfterSeconds: z.number().min(0).nullable().optional(),
    otherShare: z.number().min(0).max(1).optional(),
  }),
}

/** What there is of Google Drive to look at and to change. */
export type ControlledDrive = {
  world: DriveWorld
  listing: Listing
  counts: Counts
  quota: Quota
  refusals: ReadonlyMap<string, StandingRefusal>
  whoSees(): WhoSees
  refuse(id: string, refusal: Partial<StandingRefusal>): void
  allow(id: string): void
  serviceAccount(): object
}

export class DriveControl {
  readonly #drive: ControlledDrive
  readonly #clock: Clock

  constructor(drive: ControlledDrive, clock: Clock) {
    this.#drive = drive
    this.#clock = clock
  }

  /** Undefined where it is about something else. */
  answer(call: SimCall, pieces: readonly string[]): SimAnswer | undefined {
    if (pieces[0] !== 'drive') return undefined
    const what = `${call.verb} ${pieces.slice(1).join('/')}`
    return (
      this.#state(call, what) ??
      this.#people(call, what) ??
      this.#documents(call, what) ??
      this.#sharing(call, what)
    )
  }

  #state(call: SimCall, what: string): SimAnswer | undefined {
    const drive = this.#drive
    switch (what) {
      case 'GET ':
        return jsonAnswer(this.#summary())
      case 'GET who-sees':
        return jsonAnswer({ atMs: this.#clock.now(), users: drive.whoSees() })
      case 'GET items':
        return jsonAnswer({ items: [...drive.world.items.values()].map((item) => itemJson(item)) })
      case 'GET counts':
        return jsonAnswer(drive.counts.list())
      case 'GET service-account':
        return jsonAnswer(drive.serviceAccount())
      case 'GET quota':
        return jsonAnswer(drive.quota.settings)
      case 'PUT quota':
        drive.quota.set(parse(inputs.quota, call))
        return jsonAnswer(drive.quota.settings)
      case 'PUT settings': {
        const { incompleteSearch, tellsBelow } = parse(inputs.settings, call)
        if (incompleteSearch !== undefined) drive.listing.isIncomplete = incompleteSearch
        if (tellsBelow !== undefined) drive.world.tellsBelow = tellsBelow
        return jsonAnswer(this.#summary())
      }
      case 'POST refuse': {
        const { id: target, ...refusal } = parse(inputs.refuse, call)
        drive.refuse(target, refusal)
        return jsonAnswer({ refused: [...drive.refusals.keys()] })
      }
      case 'POST allow':
        drive.allow(parse(inputs.id, call).id)
        return jsonAnswer({ refused: [...drive.refusals.keys()] })
      default:
        return undefined
    }
  }

  #people(call: SimCall, what: string): SimAnswer | undefined {
    const { world } = this.#drive
    switch (what) {
      case 'POST users':
        return jsonAnswer(world.addUser(parse(inputs.user, call)))
      case 'POST groups': {
        const { members, ...group } = world.addGroup(parse(inputs.group, call))
        return jsonAnswer({ ...group, members: [...members] })
      }
      case 'PUT groups': {
        const { address, members } = parse(inputs.members, call)
        world.setMembers(address, members)
        return jsonAnswer({ address, members })
      }
      case 'POST drives':
        return itemAnswer(world.addDrive(parse(inputs.drive, call)))
      default:
        return undefined
    }
  }

  #documents(call: SimCall, what: string): SimAnswer | undefined {
    const { world } = this.#drive
    switch (what) {
      case 'POST folder':
        return itemAnswer(world.createFolder(parse(inputs.folder, call)))
      case 'POST file': {
        const { text: words, base64, ...input } = parse(inputs.file, call)
        return itemAnswer(world.create({ ...input, content: inputBytes({ text: words, base64 }) }))
      }
      case 'POST shortcut':
        return itemAnswer(
          world.create({ ...parse(inputs.shortcut, call), mimeType: 'application/vnd.google-apps.shortcut' }),
        )
      case 'POST edit': {
        const { id: target, text: words, base64, ...options } = parse(inputs.edit, call)
        return itemAnswer(world.edit(target, inputBytes({ text: words, base64 }), options))
      }
      case 'POST rename': {
        const input = parse(inputs.rename, call)
        return itemAnswer(world.rename(input.id, input.name, input.by))
      }
      case 'POST move': {
        const input = parse(inputs.move, call)
        return itemAnswer(world.move(input.id, input.parent, input.by))
      }
      case 'POST trash':
      case 'POST untrash': {
        const input = parse(inputs.id, call)
        return itemAnswer(
          what === 'POST trash' ? world.trash(input.id, input.by) : world.untrash(input.id, input.by),
        )
      }
      case 'POST delete': {
        const item = world.item(parse(inputs.id, call).id)
        if (item.isRoot) world.deleteDrive(item.id)
        else world.delete(item.id)
        return itemAnswer(item)
      }
      default:
        return undefined
    }
  }

  #sharing(call: SimCall, what: string): SimAnswer | undefined {
    const { world } = this.#drive
    switch (what) {
      case 'POST share': {
        const { id: target, ...input } = parse(inputs.share, call)
        return jsonAnswer(world.share(target, input))
      }
      case 'POST unshare': {
        const input = parse(inputs.unshare, call)
        world.unshare(input.id, input.whose)
        return itemAnswer(world.item(input.id))
      }
      case 'POST limit': {
        const input = parse(inputs.limit, call)
        return itemAnswer(world.limit(input.id, input.isLimited))
      }
      case 'POST open': {
        const input = parse(inputs.open, call)
        world.open(input.address, input.id)
        return itemAnswer(world.item(input.id))
      }
      default:
        return undefined
    }
  }

  #summary(): Record<string, unknown> {
    const { world, listing } = this.#drive
    const { users, groups, drives, items, tellsBelow } = world
    return {
      users: [...users.values()],
      groups: [...groups.values()].map(({ members, ...group }) => ({ ...group, members: [...members] })),
      drives: [...drives.values()].map((root) => itemJson(root)),
      items: items.size,
      incompleteSearch: listing.isIncomplete,
      tellsBelow,
    }
  }
}

function itemAnswer(item: Item): SimAnswer {
  return jsonAnswer(itemJson(item))
}

function itemJson(item: Item): Record<string, unknown> {
  const {
    id: own,
    name,
    mimeType,
    parent,
    owner,
    driveId,
    isRoot,
    isLimited,
    isDeleted,
    modifiedMs,
    version,
  } = item
  return {
    id: own,
    name,
    mimeType,
    parent: parent?.id,
    owner,
    driveId,
    isRoot,
    isLimited,
    isDeleted,
    isTrashed: isTrashed(item),
    modifiedMs,
    version,
    permissions: [...item.permissions.values()],
  }
}

function inputBytes(input: { text?: string | undefined; base64?: string | undefined }): string | Buffer {
  if (input.text !== undefined && input.base64 !== undefined)
    throw new UsageError('Give text or base64, not both.')
  return input.base64 === undefined ? (input.text ?? '') : Buffer.from(input.base64, 'base64')
}
