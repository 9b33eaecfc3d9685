/** The control API of drives, under /control/drives: the other device, the quirks, the dump for an oracle. */
import { z } from 'zod'
import { TidemarkError, UsageError } from '../../base/errors.ts'
import { parse } from '../control.ts'
import { jsonAnswer, type SimAnswer, type SimCall } from '../server.ts'
import { type ContentInput, readContent } from './content.ts'
import { DriveFault } from './drive-fault.ts'
import { type Item, itemPath, sizeOf } from './item.ts'
import { quirkSwitches } from './quirks.ts'
import type { RequestRate } from './request-rate.ts'
import type { MicrosoftSignIn } from './sign-in.ts'
import type { SimDrive } from './sim-drive.ts'
import type { TransferUrls } from './transfer-urls.ts'

const path = z.string().min(1)
const conflict = z.enum(['fail', 'replace', 'rename']).optional()
const MS_MAX = 8.64e15
const ms = z.number().int().min(-MS_MAX).max(MS_MAX)
const content = {
  text: z.string().optional(),
  base64: z.string().optional(),
  synthetic: z.strictObject({ seed: z.number().int().min(0), size: z.number().int().min(0) }).optional(),
}
const times = { modifiedMs: ms.optional(), createdMs: ms.optional() }
const inputs = {
  write: z.strictObject({ path, conflict, ...content, ...times }),
  append: z.strictObject({ path, text: z.string() }),
  move: z.strictObject({ path, to: path, conflict }),
  rename: z.strictObject({ path, name: path, conflict }),
  path: z.strictObject({ path }),
  share: z.strictObject({ path, with: z.string(), role: z.enum(['read', 'write']).optional() }),
  unshare: z.strictObject({ path, with: z.string() }),
  shortcut: z.strictObject({ path, drive: z.string(), to: path }),
  restore: z.strictObject({ path, conflict }),
  times: z.strictObject({ path, ...times }),
  expire: z.strictObject({
    kind: z.enum(['resyncChangesApplyDifferences', 'resyncChangesUploadDifferences']).optional(),
  }),
  settings: z.strictObject({
    quotaBytes: z.number().int().min(0).optional(),
    sessionMs: z.number().positive().optional(),
  }),
  pause: z.strictObject({ seconds: z.number().min(0) }),
  rate: z.strictObject({
    requestsPerSecond: z.number().positive().nullable().optional(),
    burst: z.number().min(1).optional(),
    retryAfterSeconds: z.number().min(0).optional(),
    status: z.union([z.literal(429), z.literal(503), z.literal(509)]).optional(),
  }),
  signIn: z.strictObject({
    deviceIntervalS: z.number().min(0).optional(),
    endsUsedRefresh: z.boolean().optional(),
    downloadUrlMs: z.number().positive().optional(),
  }),
  empty: z.strictObject({}),
}

/** What there is of OneDrive to look at and to change. */
export type ControlledOneDrive = {
  addresses: readonly string[]
  drives: readonly SimDrive[]
  signIn: MicrosoftSignIn
  rate: RequestRate
  urls: TransferUrls
  drive(name: string): SimDrive
}

export class DriveControl {
  readonly #oneDrive: ControlledOneDrive

  constructor(oneDrive: ControlledOneDrive) {
    this.#oneDrive = oneDrive
  }

  /** Undefined where it is about something else. */
  answer(call: SimCall, pieces: readonly string[]): SimAnswer | undefined {
    if (pieces[0] === 'drive-rate') return this.#rate(call)
    if (pieces[0] === 'drive-sign-in') return this.#signIn(call)
    if (pieces[0] !== 'drives') return undefined
    const [, name, ...rest] = pieces
    if (name === undefined)
      return jsonAnswer({ drives: this.#oneDrive.drives.map((sim) => this.#summary(sim)) })
    const sim = this.#oneDrive.drive(name)
    try {
      const what = `${call.verb} ${rest.join('/')}`
      return this.#state(call, sim, what) ?? this.#device(call, sim, what)
    } catch (thrown) {
      if (!(thrown instanceof DriveFault)) throw thrown
      throw new TidemarkError(`${thrown.code}: ${thrown.message}`, { kind: 'permanent', cause: thrown })
    }
  }

  #state(call: SimCall, sim: SimDrive, what: string): SimAnswer | undefined {
    switch (what) {
      case 'GET ':
        return jsonAnswer(this.#summary(sim))
      case 'GET dump':
        return jsonAnswer(sim.dump())
      case 'GET content':
        return contentAnswer(sim, call.query.get('key') ?? '')
      case 'GET quirks':
        return jsonAnswer(sim.quirks)
      case 'PUT quirks':
        sim.setQuirks(parse(quirkSwitches.partial(), call) as Parameters<SimDrive['setQuirks']>[0])
        return jsonAnswer(sim.quirks)
      case 'PUT settings': {
        const { quotaBytes, sessionMs } = parse(inputs.settings, call)
        if (quotaBytes !== undefined) sim.state.quotaBytes = quotaBytes
        if (sessionMs !== undefined) sim.sessions.sessionMs = sessionMs
        return jsonAnswer(this.#summary(sim))
      }
      case 'POST expire-delta':
        sim.expireDelta(parse(inputs.expire, call).kind)
        return jsonAnswer(this.#summary(sim))
      case 'POST share': {
        const { path: at, with: account, role } = parse(inputs.share, call)
        return itemAnswer(sim.share(at, account, role))
      }
      case 'POST unshare': {
        const { path: at, with: account } = parse(inputs.unshare, call)
        sim.unshare(at, account)
        return jsonAnswer(this.#summary(sim))
      }
      case 'POST shortcut': {
        const { path: at, drive, to } = parse(inputs.shortcut, call)
        const { state, device } = this.#oneDrive.drive(drive)
        return itemAnswer(sim.device.shortcut(at, { drive: state, item: device.item(to) }))
      }
      case 'POST pause':
        this.#oneDrive.rate.pause(sim.account, parse(inputs.pause, call).seconds)
        return jsonAnswer(this.#summary(sim))
      default:
        return undefined
    }
  }

  #device(call: SimCall, { device }: SimDrive, what: string): SimAnswer | undefined {
    switch (what) {
      case 'POST write':
      case 'POST edit': {
        const { text, base64, synthetic, ...input } = parse(inputs.write, call)
        const bytes = contentInput({ text, base64, synthetic })
        const { path: at, ...options } = input
        return itemAnswer(
          what === 'POST edit' ? device.edit(at, bytes, options) : device.write(at, bytes, options),
        )
      }
      case 'POST append': {
        const input = parse(inputs.append, call)
        return itemAnswer(device.append(input.path, input.text))
      }
      case 'POST move': {
        const { path: from, to, ...options } = parse(inputs.move, call)
        return itemAnswer(device.move(from, to, options))
      }
      case 'POST rename': {
        const { path: from, name, ...options } = parse(inputs.rename, call)
        return itemAnswer(device.rename(from, name, options))
      }
      case 'POST delete':
        return itemAnswer(device.delete(parse(inputs.path, call).path))
      case 'POST mkdir':
        return itemAnswer(device.mkdir(parse(inputs.path, call).path))
      case 'POST notebook':
        return itemAnswer(device.notebook(parse(inputs.path, call).path))
      case 'POST restore': {
        const { path: from, ...options } = parse(inputs.restore, call)
        return itemAnswer(device.restore(from, options))
      }
      case 'POST times': {
        const { path: at, ...changed } = parse(inputs.times, call)
        return itemAnswer(device.setTimes(at, changed))
      }
      case 'POST empty-recycle-bin':
        parse(inputs.empty, call)
        return jsonAnswer({ purged: device.emptyRecycleBin() })
      default:
        return undefined
    }
  }

  #rate(call: SimCall): SimAnswer | undefined {
    const { rate, addresses } = this.#oneDrive
    if (call.verb === 'PUT') Object.assign(rate.settings, parse(inputs.rate, call))
    else if (call.verb !== 'GET') return undefined
    const counts = Object.fromEntries(addresses.map((account) => [account, rate.counts(account)]))
    return jsonAnswer({ ...rate.settings, counts })
  }

  #signIn(call: SimCall): SimAnswer | undefined {
    const { signIn, urls } = this.#oneDrive
    if (call.verb === 'PUT') {
      const { downloadUrlMs, ...settings } = parse(inputs.signIn, call)
      Object.assign(signIn, settings)
      if (downloadUrlMs !== undefined) urls.downloadMs = downloadUrlMs
    } else if (call.verb !== 'GET') return undefined
    const { deviceIntervalS, endsUsedRefresh } = signIn
    return jsonAnswer({ deviceIntervalS, endsUsedRefresh, downloadUrlMs: urls.downloadMs })
  }

  #summary(sim: SimDrive): Record<string, unknown> {
    const { state } = sim
    return {
      name: sim.name,
      account: sim.account,
      id: sim.id,
      type: state.type,
      seq: state.seq,
      ...sim.countItems(),
      deleted: state.recycleBin.size,
      sessions: sim.sessions.open,
      quota: { totalBytes: state.quotaBytes, usedBytes: state.usedBytes },
      rate: this.#oneDrive.rate.counts(sim.account),
    }
  }
}

function contentInput(input: {
  text: string | undefined
  base64: string | undefined
  synthetic: { seed: number; size: number } | undefined
}): ContentInput {
  const { text, base64, synthetic } = input
  if (synthetic) return synthetic
  if (base64 !== undefined) return Buffer.from(base64, 'base64')
  if (text !== undefined) return text
  throw new UsageError('The content is missing.', { hint: 'Give text, base64 or synthetic.' })
}

function contentAnswer(sim: SimDrive, key: string): SimAnswer {
  const found = sim.state.contents.get(key)
  const pieces = found && readContent(found)
  if (!found || !pieces) {
    throw new UsageError(`No bytes are kept under ${key}.`, { code: 'sim-not-found' })
  }
  const headers = { 'content-type': 'application/octet-stream' }
  return { status: 200, headers, body: { bytes: found.size, read: () => pieces } }
}

function itemAnswer(item: Item): SimAnswer {
  const { id, name, kind } = item
  return jsonAnswer({ id, name, kind, path: itemPath(item), size: sizeOf(item), hash: item.content?.hash })
}
