/**
 * Addresses of the web, as objects: `https://host/path`, from hosts that are listed and from no others.
 *
 * Invariants:
 * - no request goes to a host that is not listed, by no redirect either; to an address of this machine's own network
 *   only where that very address is listed. What a name leads to is checked by the connection that is made to it
 *   (base/pinned-fetch.ts), for each redirect anew
 * - a version is the etag, or the time of change and the length; what has neither is refused, because nobody could tell
 *   whether it was read before
 * - bytes of another version than the one that was asked for are never given out
 * - a body that ends early is an error and never an end
 */
import type { Clock } from '../../base/clock.ts'
import { asTidemarkError, TidemarkError, UsageError } from '../../base/errors.ts'
import { isInsideAddress } from '../../base/loopback.ts'
import { pinnedFetch } from '../../base/pinned-fetch.ts'
import { noBytes, noSuchBytes, objectReplaced, readContentRange, wholeBytes } from '../object-bytes.ts'
import type { ObjectBody, ObjectHead, ObjectPage, ObjectStore, ObjectVersion } from '../object-store.ts'
import { SilenceWatch } from '../silence-watch.ts'
import * as webErrors from './errors.ts'

export type WebStoreOptions = {
  clock: Clock
  /** Addresses of a name; asked by each connection. */
  resolve: (host: string) => Promise<readonly string[]>
  /** `data.example.com`, `10.0.0.5`, or with a port: `127.0.0.1:8080`. */
  /** Each as `host` or `host:port`; with `http://` before it, it may be asked without TLS as well. */
  hosts: readonly string[]
  /** Silence of the connection, not the length of the call. */
  timeoutMs?: number
}

type Opened = { response: Response; watch: SilenceWatch; leave(): void }

const TIMEOUT_MS = 30_000
const REDIRECTS_MAX = 5
const PLAIN = 'http://'
const ERROR_BYTES_MAX = 1_024

export class WebStore implements ObjectStore {
  readonly scheme = 'https'
  readonly #options: WebStoreOptions

  constructor(options: WebStoreOptions) {
    this.#options = options
  }

  async read(
    uri: string,
    options: { version: ObjectVersion | null; fromByte: number; signal: AbortSignal },
  ): Promise<ObjectBody> {
    const { version, fromByte, signal } = options
    let opened: Opened
    try {
      opened = await this.#open('GET', uri, { fromByte, signal })
    } catch (thrown) {
      const isBehind = thrown instanceof TidemarkError && thrown.code === 'range'
      if (!isBehind) throw thrown
      return await this.#behindTheEnd(uri, options)
    }
    const { response, watch, leave } = opened
    try {
      const contentBytes = lengthOf(response)
      const range = readContentRange(response.headers.get('content-range'))
      const head = headOf(uri, response, range ? range.size : contentBytes)
      if (version && head.version.id !== version.id) throw objectReplaced(uri)
      if (range && range.from !== fromByte) {
        throw webErrors.damagedAnswer('an address', 'it begins at another byte')
      }
      const promised = range ? range.size : null
      if (promised !== null && contentBytes !== null && contentBytes !== promised - fromByte) {
        throw webErrors.cutShort('an object')
      }
      const bytes = wholeBytes({
        chunks: chunksOf(response, { watch, leave }),
        skipBytes: range ? 0 : fromByte,
        expectedBytes: contentBytes,
        cutShort: () => webErrors.cutShort('an address'),
      })
      return { ...head, bytes }
    } catch (thrown) {
      leave()
      throw thrown
    }
  }

  async head(uri: string, signal: AbortSignal): Promise<ObjectHead | undefined> {
    try {
      const { response, leave } = await this.#open('HEAD', uri, { fromByte: 0, signal })
      leave()
      return headOf(uri, response, lengthOf(response))
    } catch (thrown) {
      if (thrown instanceof TidemarkError && thrown.kind === 'gone') return undefined
      throw thrown
    }
  }

  async list(): Promise<ObjectPage> {
    throw new UsageError('A web server does not tell which addresses it has.', { code: 'no-listing' })
  }

  async close(): Promise<void> {}

  async #behindTheEnd(
    uri: string,
    { version, fromByte, signal }: { version: ObjectVersion | null; fromByte: number; signal: AbortSignal },
  ): Promise<ObjectBody> {
    const { response, leave } = await this.#open('HEAD', uri, { fromByte: 0, signal })
    leave()
    const head = headOf(uri, response, lengthOf(response))
    if (version && head.version.id !== version.id) throw objectReplaced(uri)
    if (head.sizeBytes !== fromByte) throw noSuchBytes(uri, fromByte)
    return { ...head, bytes: noBytes() }
  }

  async #open(
    method: 'GET' | 'HEAD',
    uri: string,
    { fromByte, signal }: { fromByte: number; signal: AbortSignal },
  ): Promise<Opened> {
    const { clock, timeoutMs = TIMEOUT_MS } = this.#options
    const watch = new SilenceWatch({ clock, timeoutMs, caller: signal, errors: webErrors })
    let url = uri
    try {
      for (let redirects = 0; redirects <= REDIRECTS_MAX; redirects++) {
        const response = await this.#ask(method, url, { fromByte, watch })
        const leave = (): void => {
          // Its connection may have failed already, which whoever was reading has heard of.
          response.body?.cancel().catch(() => undefined)
          watch.end()
        }
        const next = redirectOf(url, response)
        if (next === undefined && response.ok) return { response, watch, leave }
        if (next === undefined) {
          leave()
          const body = String(response.statusText).slice(0, ERROR_BYTES_MAX)
          const answer = { status: response.status, headers: response.headers, body, nowMs: clock.now() }
          throw webErrors.classify(answer, { uri, fromByte })
        }
        response.body?.cancel().catch(() => undefined)
        url = next
      }
      throw webErrors.hostDenied(uri, `it redirects more than ${REDIRECTS_MAX} times`)
    } catch (thrown) {
      watch.end()
      throw thrown
    }
  }

  async #ask(
    method: string,
    url: string,
    { fromByte, watch }: { fromByte: number; watch: SilenceWatch },
  ): Promise<Response> {
    const { hostname } = this.#checkedHost(url)
    const { hosts, resolve } = this.#options
    // What is listed as such is meant.
    const meant = [hostname, ...hosts.map(withoutScheme)].map(withoutBrackets)
    const isInside = (address: string): boolean => isInsideAddress(address) && !meant.includes(address)
    const ask = pinnedFetch({ resolve, isInside })
    const headers: Record<string, string> = {
      accept: '*/*',
      // Bytes are counted, so they must come as they are.
      'accept-encoding': 'identity',
      'user-agent': 'tidemark',
    }
    if (method === 'GET') headers.range = `bytes=${fromByte}-`
    try {
      return await watch.hear(ask(url, { method, headers, redirect: 'manual', signal: watch.signal }))
    } catch (thrown) {
      const { code, message } = asTidemarkError(thrown)
      if (code === 'host-inside') throw webErrors.hostDenied(url, message)
      // Its owner may be without names for a while: no object is bad for that.
      throw code === 'host-unknown' ? webErrors.unreachable(thrown) : thrown
    }
  }

  #checkedHost(address: string): URL {
    const url = URL.parse(address)
    const { hosts } = this.#options
    if (!url || !/^https?:$/.test(url.protocol)) throw webErrors.hostDenied(address, 'it is no web address')
    if (url.username || url.password) throw webErrors.hostDenied(address, 'it holds a password')
    const isListed = (listed: string): boolean => listed === url.host || listed === url.hostname
    if (!hosts.map(withoutScheme).some(isListed)) {
      throw webErrors.hostDenied(address, `${url.host} is not listed`)
    }
    // Whoever is on the way could put other records there: a message does not decide that.
    const isPlainListed = hosts.some((host) => host.startsWith(PLAIN) && isListed(withoutScheme(host)))
    if (url.protocol === 'http:' && !isPlainListed) {
      throw webErrors.hostDenied(address, `${url.host} is listed for https only; ${PLAIN}${url.host} is not`)
    }
    return url
  }
}

function withoutScheme(host: string): string {
  return host.replace(/^https?:\/\//, '')
}

/** Of an address of IPv6 in an address of the web. */
function withoutBrackets(host: string): string {
  return host.replace(/^\[(.*)\]$/, '$1')
}

function redirectOf(url: string, response: Response): string | undefined {
  const location = response.headers.get('location')
  if (![301, 302, 303, 307, 308].includes(response.status) || location === null) return undefined
  return URL.parse(location, url)?.href
}

function lengthOf(response: Response): number | null {
  const length = response.headers.get('content-length')
  return length !== null && /^\d{1,15}$/.test(length) ? Number(length) : null
}

function headOf(uri: string, response: Response, sizeBytes: number | null): ObjectHead {
  const etag = response.headers.get('etag')
  const modified = Date.parse(response.headers.get('last-modified') ?? '')
  const modifiedAtMs = Number.isFinite(modified) ? modified : null
  const byTime = modifiedAtMs === null || sizeBytes === null ? undefined : `${modifiedAtMs}-${sizeBytes}`
  const id = etag ? etag.replace(/^"(.*)"$/, '$1') : byTime
  if (id === undefined) {
    throw new TidemarkError(`${uri} has neither an ETag nor a Last-Modified with a length`, {
      kind: 'permanent',
      code: 'object-unversioned',
      hint: 'Without them nobody can tell whether it was read before.',
    })
  }
  const contentEncoding = response.headers.get('content-encoding')
  // It was asked for as it is, and these are known by their first bytes; others would be read as if they were text.
  if (contentEncoding !== null && !/^(?:identity|x?-?gzip|zstd)$/i.test(contentEncoding.trim())) {
    throw new TidemarkError(`${uri} is sent packed as ${contentEncoding}, which cannot be unpacked`, {
      kind: 'permanent',
      code: 'content-encoding',
      hint: 'Its server should send it as it is, or packed with gzip or zstd.',
    })
  }
  return {
    version: { id },
    sizeBytes,
    modifiedAtMs,
    contentType: response.headers.get('content-type'),
    contentEncoding,
  }
}

async function* chunksOf(
  response: Response,
  { watch, leave }: { watch: SilenceWatch; leave(): void },
): AsyncGenerator<Uint8Array, void, undefined> {
  const reader = response.body?.getReader()
  if (!reader) return leave()
  try {
    for (;;) {
      const { done, value } = await watch.hear(reader.read())
      if (done) return
      yield value
    }
  } finally {
    reader.cancel().catch(() => undefined)
    watch.end()
  }
}
