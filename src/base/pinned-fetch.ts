/**
 * `fetch` for addresses that somebody else may have chosen: the address that is checked is the address that is
 * connected to. The look-up is the socket's own, so that a name which is bound anew between a look and a connection
 * (DNS rebinding) gains nothing; where one of a name's addresses is inside a network, none of them is used.
 *
 * Redirects are not followed: whoever follows one asks again, and the new name is looked up as this one was. There is
 * no pool of connections, and no proxy: both would connect to something that was not looked up here.
 */
import { request as httpRequest, type IncomingMessage, type RequestOptions } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { isIP } from 'node:net'
import { Readable } from 'node:stream'
import { TidemarkError } from './errors.ts'
import { isInsideAddress } from './loopback.ts'

export type PinnedOptions = {
  /** The addresses of a name. Asked once for each connection, by the connection itself. */
  resolve: (host: string) => Promise<readonly string[]>
  isInside?: (address: string) => boolean
}

export type PinnedFetch = (
  address: string,
  init: Pick<RequestInit, 'method' | 'headers' | 'signal' | 'redirect' | 'credentials'>,
) => Promise<Response>

/** Statuses whose answers have no body: a Response refuses one. */
const BODILESS = [204, 205, 304]

/** The codes of its refusals are `host-unknown` and `host-inside`. */
export function pinnedFetch(options: PinnedOptions): PinnedFetch {
  return async (address, { method = 'GET', headers, signal }) => {
    const url = new URL(address)
    const { hostname, protocol } = url
    const host = hostname.replace(/^\[(.*)\]$/, '$1')
    // No socket looks up what is an address already.
    if (isIP(host) !== 0) await checkedAddresses(host, { ...options, resolve: async () => [host] })
    const request = protocol === 'https:' ? httpsRequest : httpRequest
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>()
    const asked = request(url, {
      method,
      headers: Object.fromEntries(new Headers(headers)),
      lookup: lookupOf(options),
      agent: false,
      ...(signal && { signal }),
    })
    asked.on('response', resolve).on('error', reject).end()
    const answer = await promise
    const { statusCode: status = 502, statusMessage: statusText } = answer
    const isBodiless = BODILESS.includes(status)
    if (isBodiless) answer.resume()
    return new Response(isBodiless ? null : (Readable.toWeb(answer) as ReadableStream<Uint8Array>), {
      status,
      statusText,
      headers: headersOf(answer),
    })
  }
}

function headersOf({ rawHeaders }: IncomingMessage): Headers {
  const headers = new Headers()
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) headers.append(rawHeaders[at]!, rawHeaders[at + 1]!)
  return headers
}

function lookupOf(options: PinnedOptions): NonNullable<RequestOptions['lookup']> {
  return (host, { all }, done) => {
    checkedAddresses(host, options).then(
      (found) => {
        const each = found.map((address) => ({ address, family: isIP(address) }))
        if (all) done(null, each)
        else done(null, each[0]!.address, each[0]!.family)
      },
      (error: Error) => done(error, []),
    )
  }
}

/** All of them are outside, or it throws. */
export async function checkedAddresses(
  host: string,
  { resolve, isInside = isInsideAddress }: PinnedOptions,
): Promise<readonly string[]> {
  const addresses = await resolve(host).catch(() => [])
  if (addresses.length === 0) {
    throw new TidemarkError(`${host} was not found.`, { kind: 'permanent', code: 'host-unknown' })
  }
  if (addresses.some(isInside)) {
    const message = `${host} leads into a network of its own.`
    throw new TidemarkError(message, { kind: 'permanent', code: 'host-inside' })
  }
  return addresses
}
