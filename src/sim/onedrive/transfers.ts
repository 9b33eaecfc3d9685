/**
 * What needs no sign-in because its address is secret: downloads, fragments of upload sessions, and the
 * monitors of copies.
 */
import type { FaultEffect } from '../fault-rules.ts'
import type { FaultPlan } from '../faults.ts'
import {
  jsonAnswer,
  type Operation,
  type Routes,
  type SimAnswer,
  type SimCall,
  safeDecode,
} from '../server.ts'
import { type Content, readContent } from './content.ts'
import { sessionJson, uploadAnswer } from './content-routes.ts'
import type { CopyMonitors } from './copy-monitors.ts'
import { faultAnswer, graphFault, invalid, refusalAnswer, thrownAnswer } from './errors.ts'
import type { Item } from './item.ts'
import { eTagOf } from './item-json.ts'
import { type GraphContext, headerTag, noContent } from './route.ts'
import type { SimDrive } from './sim-drive.ts'
import {
  downloadPrefix,
  monitorPrefix,
  type TransferUrls,
  uploadPrefix,
  VERSION_MARK,
} from './transfer-urls.ts'
import { FRAGMENT_BYTES_MAX } from './upload-sessions.ts'

export type TransfersOptions = {
  findDrive: (id: string) => SimDrive | undefined
  urls: TransferUrls
  monitors: CopyMonitors
  onEffect: (sim: SimDrive, effect: FaultEffect) => void
  /** An answer that ends it here: the account is throttled. */
  throttle: (account: string) => SimAnswer | undefined
}

const RANGE = /^bytes=(\d*)-(\d*)$/
const CONTENT_RANGE = /^bytes (\d{1,15})-(\d{1,15})\/(\d{1,15})$/
/** A fragment that is too long is refused by its length, and read nevertheless. */
const BODY_BYTES_MAX = 2 * FRAGMENT_BYTES_MAX

export class Transfers implements Routes {
  readonly #options: TransfersOptions
  /** Download addresses that were refused once, where that quirk is on. */
  readonly #refusedOnce = new Set<string>()

  constructor(options: TransfersOptions) {
    this.#options = options
  }

  match(call: SimCall): Operation | undefined {
    if (call.path.startsWith(downloadPrefix)) return this.#download(call)
    if (call.path.startsWith(uploadPrefix)) return this.#upload(call)
    if (call.path.startsWith(monitorPrefix)) return this.#monitor(call)
    return undefined
  }

  #download(call: SimCall): Operation {
    const [driveId = '', itemId = ''] = call.path.slice(downloadPrefix.length).split('/').map(safeDecode)
    const sim = this.#options.findDrive(driveId)
    return this.#operation('graph.download', sim, () => {
      const { urls } = this.#options
      const tempauth = call.query.get('tempauth') ?? ''
      if (!sim || !urls.check({ driveId: sim.id, itemId, tempauth, nowMs: sim.state.nowMs })) {
        return faultAnswer(graphFault(401, { message: 'The download address has expired.' }))
      }
      if (sim.quirks.freshDownloadUnauthorized && !this.#refusedOnce.has(tempauth)) {
        this.#refusedOnce.add(tempauth)
        return faultAnswer(graphFault(401))
      }
      const [id = '', version] = itemId.split(VERSION_MARK)
      const item = sim.state.get(id)
      if (!item?.content) return faultAnswer(graphFault(404))
      const content = version === undefined ? item.content : sim.state.version(item, version).content
      return downloadAnswer(call, sim, item, content)
    })
  }

  #upload(call: SimCall): Operation {
    const [driveId = '', sessionId = ''] = call.path.slice(uploadPrefix.length).split('/').map(safeDecode)
    const sim = this.#options.findDrive(driveId)
    const names: Record<string, string> = {
      PUT: 'graph.session.put',
      GET: 'graph.session.status',
      DELETE: 'graph.session.cancel',
      POST: 'graph.session.commit',
    }
    const operation = this.#operation(names[call.verb] ?? 'graph.session.unknown', sim, (plan) => {
      if (!sim) return faultAnswer(graphFault(404))
      if (sim.quirks.sessionRefusesAuthorization && call.headers.authorization !== undefined) {
        return faultAnswer(graphFault(401))
      }
      return this.#session(call, sim, sessionId, plan)
    })
    return { ...operation, takesChunks: true, bodyBytesMax: BODY_BYTES_MAX }
  }

  #session(call: SimCall, sim: SimDrive, id: string, plan: FaultPlan | undefined): SimAnswer {
    const { sessions } = sim
    switch (call.verb) {
      case 'GET':
        return jsonAnswer(sessionJson(sessions.get(id)))
      case 'DELETE':
        sessions.cancel(id)
        return noContent
      case 'POST':
        return uploadAnswer(this.#context(call, sim, plan), sessions.commit(id))
      case 'PUT': {
        const outcome = sessions.append(id, fragmentOf(call))
        if ('writer' in outcome) return jsonAnswer(sessionJson(outcome), 202)
        return uploadAnswer(this.#context(call, sim, plan), outcome)
      }
      default:
        return faultAnswer(graphFault(405, { code: 'invalidRequest', message: 'Method not allowed.' }))
    }
  }

  #monitor(call: SimCall): Operation {
    const { monitors } = this.#options
    return this.#operation('graph.monitor', undefined, () => {
      const state = monitors.look(call.path.slice(monitorPrefix.length))
      if (!state) return faultAnswer(graphFault(404))
      const { status, item, code, message } = state
      if (status === 'inProgress') {
        return jsonAnswer({ operation: 'ItemCopy', percentageComplete: 50, status }, 202)
      }
      if (item) return jsonAnswer({ percentageComplete: 100, resourceId: item.id, status })
      return jsonAnswer({ status, error: { code, message } })
    })
  }

  #operation(
    name: string,
    sim: SimDrive | undefined,
    run: (plan: FaultPlan | undefined) => SimAnswer,
  ): Operation {
    return {
      name,
      account: sim?.account,
      refuse: refusalAnswer,
      admit: () => (sim ? this.#options.throttle(sim.account) : undefined),
      effect: (effect) => {
        if (sim) this.#options.onEffect(sim, effect)
      },
      run: (plan) => {
        try {
          return run(plan)
        } catch (thrown) {
          return thrownAnswer(thrown)
        }
      },
    }
  }

  #context(call: SimCall, sim: SimDrive, plan: FaultPlan | undefined): GraphContext {
    const { urls } = this.#options
    const address = { driveId: sim.id, item: undefined, action: '', argument: undefined }
    return { sim, drive: sim.state, call, address, plan, urls }
  }
}

function fragmentOf(call: SimCall): { from: number; to: number; total: number; chunks: readonly Buffer[] } {
  const match = CONTENT_RANGE.exec(call.headers['content-range'] ?? '')
  if (!match) throw invalid('The Content-Range header is missing or malformed.')
  const [from = 0, to = 0, total = 0] = match.slice(1).map(Number)
  const chunks = call.chunks ?? []
  let length = 0
  for (const chunk of chunks) length += chunk.length
  if (length !== to - from + 1)
    throw invalid('The Content-Range header does not match the length of the body.')
  return { from, to, total, chunks }
}

function downloadAnswer(call: SimCall, sim: SimDrive, item: Item, content: Content): SimAnswer {
  const etag = headerTag(eTagOf(sim.state, item))
  const headers = {
    'content-type': 'application/octet-stream',
    'accept-ranges': 'bytes',
    etag,
    'last-modified': new Date(item.modifiedMs).toUTCString(),
  }
  const { range, 'if-range': ifRange } = call.headers
  const isWhole =
    range === undefined || sim.quirks.rangeIgnored || (ifRange !== undefined && ifRange !== etag)
  const asked = isWhole ? undefined : rangeOf(range, content.size)
  if (asked === 'unsatisfiable') {
    const contentRange = { 'content-range': `bytes */${content.size}` }
    return faultAnswer(graphFault(416, { headers: contentRange }))
  }
  if (!asked) return bytesAnswer(content, { from: 0, to: content.size }, { status: 200, headers })
  const contentRange = `bytes ${asked.from}-${asked.to - 1}/${content.size}`
  return bytesAnswer(content, asked, { status: 206, headers: { ...headers, 'content-range': contentRange } })
}

function bytesAnswer(
  content: Content,
  { from, to }: { from: number; to: number },
  head: { status: number; headers: Record<string, string> },
): SimAnswer {
  if (content.source.kind === 'forgotten') {
    const message = 'The simulator did not keep these bytes: raise keepBytesMax, or upload synthetic content.'
    return faultAnswer(graphFault(501, { message }))
  }
  return { ...head, body: { bytes: to - from, read: () => readContent(content, { from, to })! } }
}

/** Undefined for what cannot be read, which means the whole. */
function rangeOf(header: string, size: number): { from: number; to: number } | 'unsatisfiable' | undefined {
  const match = RANGE.exec(header.trim())
  if (!match || (match[1] === '' && match[2] === '')) return undefined
  const [first, last] = [match[1]!, match[2]!]
  if (first === '') {
    const length = Math.min(Number(last), size)
    return length === 0 ? 'unsatisfiable' : { from: size - length, to: size }
  }
  const from = Number(first)
  const to = last === '' ? size : Math.min(Number(last) + 1, size)
  if (from >= size) return 'unsatisfiable'
  return to <= from ? undefined : { from, to }
}
