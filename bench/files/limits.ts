/**
 * The plain protocol: bare loops that make the calls of a sync, as many at a time, and keep no books. Nothing is
 * decided, compared, hashed, committed or tried again; answers are not read further than the next call needs.
 */
import { constants, lstatSync, readdirSync } from 'node:fs'
import { mkdir, open, readFile, rename, utimes } from 'node:fs/promises'
import { Agent, type IncomingMessage, request } from 'node:http'
import { dirname, join } from 'node:path'
import { systemClock } from '../../src/base/clock.ts'
import { type DriveAt, writeThere } from './served-drive.ts'
import { CHUNK_BYTES, PARALLEL } from './subject.ts'
import { filesOf, foldersOf, type Huge, hugeFiles, MODIFIED_MS, type Tree } from './tree.ts'

export type LimitOrder = {
  do: 'limit'
  at: DriveAt
  root: string
  loop: 'up' | 'down' | 'huge-up' | 'huge-down' | 'look' | 'change' | 'move'
  tree?: Tree
  huge?: Huge
  rounds?: number
}

export type LimitDone = { ms: number; cpuMs: number }

const PIECE_BYTES = 256 * 1024
const DELTA_ROWS = 1_000

export async function runLimit(order: LimitOrder): Promise<LimitDone> {
  const loop = new BareLoop(order)
  await loop.prepare()
  const times: LimitDone[] = []
  for (let round = 0; round < (order.rounds ?? 1); round++) {
    const link = order.loop === 'change' ? await loop.latest() : ''
    if (order.loop === 'change') await writeThere(order.at, CHANGED, `bare ${round}`)
    const cpuBefore = process.cpuUsage()
    const fromMs = systemClock.monotonicMs()
    await loop.run(link, round)
    const ms = systemClock.monotonicMs() - fromMs
    const { user, system } = process.cpuUsage(cpuBefore)
    times.push({ ms, cpuMs: (user + system) / 1_000 })
  }
  loop.close()
  return times.sort((one, other) => one.ms - other.ms)[Math.floor(times.length / 2)]!
}

export const CHANGED = 't0/s0/f0.txt'

type Reply = { status: number; location: string | undefined; body: Buffer }
type Call = {
  method: string
  url: string
  headers?: Record<string, string>
  body?: Buffer | AsyncIterable<Buffer>
}
type DeltaRow = { id: string; name: string; file?: object; root?: object; parentReference?: { id: string } }

class BareLoop {
  readonly #order: LimitOrder
  readonly #agent = new Agent({ keepAlive: true, scheduling: 'lifo' })
  readonly #driveUrl: string

  constructor(order: LimitOrder) {
    this.#order = order
    this.#driveUrl = `${order.at.graphUrl}/drives/${order.at.driveId}`
  }

  async prepare(): Promise<void> {
    await mkdir(join(this.#order.root, '.partial'), { recursive: true })
  }

  close(): void {
    this.#agent.destroy()
  }

  async run(link: string, round: number): Promise<void> {
    switch (this.#order.loop) {
      case 'up':
        return this.#uploadTree(this.#order.tree!)
      case 'huge-up':
        return this.#uploadHuge(this.#order.huge!)
      case 'down':
      case 'huge-down':
        return this.#downloadAll(`${this.#driveUrl}/root/delta?$top=${DELTA_ROWS}`)
      case 'change':
        return this.#downloadAll(link)
      case 'look':
        await this.latest()
        lookThrough(this.#order.root)
        return
      case 'move':
        return this.#move(round)
    }
  }

  async latest(): Promise<string> {
    const reply = await this.#graph({ method: 'GET', url: `${this.#driveUrl}/root/delta?token=latest` })
    return (JSON.parse(reply.body.toString()) as Record<string, string>)['@odata.deltaLink']!
  }

  async #uploadTree(tree: Tree): Promise<void> {
    const ids = new Map<string, string>([['', this.#order.at.rootId]])
    for (const folder of foldersOf(tree)) {
      const at = folder.lastIndexOf('/')
      const parent = ids.get(folder.slice(0, Math.max(0, at)))!
      const body = Buffer.from(JSON.stringify({ name: folder.slice(at + 1), folder: {} }))
      const url = `${this.#driveUrl}/items/${parent}/children`
      ids.set(folder, replyId(await this.#graph({ method: 'POST', url, headers: JSON_TYPE, body })))
    }
    const modified = new Date(MODIFIED_MS).toISOString()
    await atOnce(filesOf(tree), async ({ path }) => {
      const body = await readFile(join(this.#order.root, path))
      const folder = ids.get(dirname(path))!
      const url = `${this.#driveUrl}/items/${folder}:/${path.slice(path.lastIndexOf('/') + 1)}:/content`
      const id = replyId(await this.#graph({ method: 'PUT', url, headers: BYTES_TYPE, body }))
      const times = Buffer.from(JSON.stringify({ fileSystemInfo: { lastModifiedDateTime: modified } }))
      const patch = { method: 'PATCH', url: `${this.#driveUrl}/items/${id}`, headers: JSON_TYPE, body: times }
      await this.#graph(patch)
    })
  }

  async #uploadHuge(huge: Huge): Promise<void> {
    await atOnce(hugeFiles(huge), async ({ path, size }) => {
      const url = `${this.#driveUrl}/root:/${path}:/createUploadSession`
      const body = Buffer.from(JSON.stringify({ item: { '@microsoft.graph.conflictBehavior': 'replace' } }))
      const made = await this.#graph({ method: 'POST', url, headers: JSON_TYPE, body })
      const { uploadUrl } = JSON.parse(made.body.toString()) as { uploadUrl: string }
      const file = await open(join(this.#order.root, path))
      try {
        for (let at = 0; at < size; at += CHUNK_BYTES) {
          const length = Math.min(CHUNK_BYTES, size - at)
          const headers = {
            'content-length': String(length),
            'content-range': `bytes ${at}-${at + length - 1}/${size}`,
          }
          const stretch = file.createReadStream({
            start: at,
            end: at + length - 1,
            highWaterMark: PIECE_BYTES,
            autoClose: false,
          })
          await this.#call({ method: 'PUT', url: uploadUrl, headers, body: stretch })
        }
      } finally {
        await file.close()
      }
    })
  }

  async #downloadAll(link: string): Promise<void> {
    const { root } = this.#order
    const paths = new Map<string, string>()
    const wanted: { id: string; path: string }[] = []
    for (let next: string | undefined = link; next; ) {
      const page = JSON.parse((await this.#graph({ method: 'GET', url: next })).body.toString()) as {
        value: DeltaRow[]
        '@odata.nextLink'?: string
      }
      for (const { id, name, file, root: isRoot, parentReference } of page.value) {
        const path = isRoot ? '' : join(paths.get(parentReference?.id ?? '') ?? '', name)
        if (file) wanted.push({ id, path })
        else {
          paths.set(id, path)
          await mkdir(join(root, path), { recursive: true })
        }
      }
      next = page['@odata.nextLink']
    }
    await atOnce(wanted, (one) => this.#download(one))
  }

  async #download({ id, path }: { id: string; path: string }): Promise<void> {
    const { root } = this.#order
    const found = await this.#graph({ method: 'GET', url: `${this.#driveUrl}/items/${id}/content` })
    const partial = join(root, '.partial', id)
    const file = await open(partial, constants.O_CREAT | constants.O_WRONLY | constants.O_TRUNC)
    try {
      const incoming = await this.#send({ method: 'GET', url: found.location! })
      let pieces: Buffer[] = []
      let waiting = 0
      for await (const piece of incoming as AsyncIterable<Buffer>) {
        pieces.push(piece)
        waiting += piece.length
        if (waiting < WRITE_BYTES) continue
        await file.writev(pieces)
        pieces = []
        waiting = 0
      }
      if (pieces.length > 0) await file.writev(pieces)
      await file.sync()
    } finally {
      await file.close()
    }
    await utimes(partial, MODIFIED_MS / 1000, MODIFIED_MS / 1000)
    await rename(partial, join(root, path))
    const folder = await open(dirname(join(root, path)))
    await folder.sync()
    await folder.close()
  }

  /** The calls of a sync that sees the move of a folder: what changed there, what is here, and the move. */
  async #move(round: number): Promise<void> {
    await this.latest()
    lookThrough(this.#order.root)
    const [from, to] = round % 2 === 0 ? ['t1', 't1 bare'] : ['t1 bare', 't1']
    const body = Buffer.from(JSON.stringify({ name: to }))
    await this.#graph({
      ...{
        method: 'PATCH',
        url: `${this.#driveUrl}/root:/${encodeURIComponent(from!)}`,
        headers: JSON_TYPE,
        body,
      },
    })
  }

  #graph(call: Call): Promise<Reply> {
    const authorization = `Bearer ${this.#order.at.accessToken}`
    return this.#call({ ...call, headers: { ...call.headers, authorization } })
  }

  async #call(call: Call): Promise<Reply> {
    const incoming = await this.#send(call)
    const pieces: Buffer[] = []
    for await (const piece of incoming as AsyncIterable<Buffer>) pieces.push(piece)
    const body = Buffer.concat(pieces)
    const status = incoming.statusCode ?? 0
    if (status >= 400) throw new Error(`${call.method} ${call.url}: ${status} ${body.toString()}`)
    return { status, location: incoming.headers.location, body }
  }

  #send({ method, url, headers = {}, body }: Call): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      const outgoing = request(url, { method, headers, agent: this.#agent })
      outgoing.on('response', resolve)
      outgoing.on('error', reject)
      if (body && Symbol.asyncIterator in body) pour(body, outgoing).catch(reject)
      else outgoing.end(body)
    })
  }
}

const WRITE_BYTES = 1024 * 1024
const JSON_TYPE = { 'content-type': 'application/json' }
const BYTES_TYPE = { 'content-type': 'application/octet-stream' }

async function pour(body: AsyncIterable<Buffer>, to: ReturnType<typeof request>): Promise<void> {
  for await (const piece of body) {
    if (!to.write(piece)) await new Promise((resolve) => to.once('drain', resolve))
  }
  to.end()
}

function replyId({ body }: Reply): string {
  return (JSON.parse(body.toString()) as { id: string }).id
}

async function atOnce<T>(all: Iterable<T>, work: (one: T) => Promise<void>): Promise<void> {
  const left = all[Symbol.iterator]()
  const loop = async (): Promise<void> => {
    for (let next = left.next(); !next.done; next = left.next()) await work(next.value)
  }
  await Promise.all(Array.from({ length: PARALLEL }, loop))
}

/** Names and stats of everything, as the fastest calls of Node give them. */
function lookThrough(root: string): number {
  let files = 0
  const folders = [root]
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
    for (const entry of readdirSync(folder, { withFileTypes: true })) {
      const path = `${folder}/${entry.name}`
      lstatSync(path, { bigint: true })
      if (entry.isDirectory()) folders.push(path)
      else files += 1
    }
  }
  return files
}
