/**
 * Fetching the bytes of a file. Graph answers with the address of the bytes, which lives for a short time and is a
 * key itself: it gets no token. Some such addresses are refused at first and work a moment later.
 */
import { TidemarkError } from '../../base/errors.ts'
import { type CallOptions, type Calls, itemPath } from './calls.ts'
import { answers } from './errors.ts'
import type { Answer } from './transport.ts'

export type DownloadOptions = CallOptions & { offset?: number | undefined }

export type Download = {
  /** From `offset` to the end. Nothing is fetched that nobody takes. Fails with a TidemarkError. */
  readonly stream: ReadableStream<Uint8Array>
  /** Instead of the stream: all of it at once, where `total` says that it is little. */
  bytes(): Promise<Buffer>
  /** 0 where the server ignored that less was wanted. */
  offset: number
  /** Of the whole file, where the server says it. */
  total: number | undefined
}

/** An address is asked twice, and there are two addresses. */
const TRIES_PER_ADDRESS = 2
const ADDRESSES_MAX = 2
const REDIRECTS_MAX = 5

export async function download(
  calls: Calls,
  driveId: string,
  itemId: string,
  options: DownloadOptions,
): Promise<Download> {
  const { offset = 0, signal } = options
  let failure: unknown
  for (let address = 1; address <= ADDRESSES_MAX; address++) {
    const opened = await openContent(calls, driveId, itemId, options)
    // Some answer with the bytes themselves; nothing less was asked for, so they are all.
    if ('answer' in opened) return downloadOf(calls, opened.answer, 0, signal)
    for (let tries = 1; tries <= TRIES_PER_ADDRESS; tries++) {
      try {
        return downloadOf(calls, await openBytes(calls, opened.url, options), offset, signal)
      } catch (error) {
        if (!isAddressEnded(error)) throw error
        failure = error
      }
    }
  }
  throw failure
}

async function openContent(
  calls: Calls,
  driveId: string,
  itemId: string,
  options: CallOptions,
): Promise<{ url: string } | { answer: Answer }> {
  const path = `${itemPath(driveId, itemId)}/content`
  return await calls.paced('content.get', options, async (signal) => {
    // Bytes that come at once must come as they are.
    const call = { verb: 'GET' as const, path, headers: { 'accept-encoding': 'identity' } }
    const answer = await calls.transport.open(call, signal, (status) => status === 200 || isRedirect(status))
    if (answer.status === 200) return { answer }
    await answer.skip()
    return { url: addressOf(calls, answer, undefined) }
  })
}

async function openBytes(calls: Calls, address: string, options: DownloadOptions): Promise<Answer> {
  const { offset = 0 } = options
  // Not asked of Graph, so that it takes nothing of what Graph allows; when it is refused, everybody waits all the same.
  return await calls.paced('content.bytes', { signal: options.signal, units: 0 }, async (signal) => {
    let url = address
    for (let redirects = 0; redirects <= REDIRECTS_MAX; redirects++) {
      const headers: Record<string, string> = offset > 0 ? { range: `bytes=${offset}-` } : {}
      const call = { verb: 'GET' as const, url, headers, asked: 'download' as const }
      const answer = await calls.transport.openAddress(call, signal, isAnswer)
      if (!isRedirect(answer.status)) return answer
      await answer.skip()
      url = addressOf(calls, answer, url)
    }
    throw answers.damagedAnswer('the download', 'it leads in circles')
  })
}

function isRedirect(status: number): boolean {
  return status === 301 || status === 302 || status === 303 || status === 307 || status === 308
}

function isAnswer(status: number): boolean {
  return status === 200 || status === 206 || isRedirect(status)
}

function addressOf(calls: Calls, answer: Answer, base: string | undefined): string {
  const location = answer.headers.get('location')
  if (!location) throw answers.damagedAnswer('the download', 'it leads nowhere')
  const url = URL.parse(location, base)?.href ?? ''
  return calls.transport.transferUrl(url, 'The download')
}

function downloadOf(calls: Calls, answer: Answer, wanted: number, signal: AbortSignal | undefined): Download {
  const place = sentRange(answer, wanted)
  if (!place) {
    answer.leave()
    throw answers.damagedAnswer('the download', 'these are not the bytes that were asked for')
  }
  const { offset, total } = place
  const spend = (bytes: number): void | Promise<void> => calls.spendBytes?.('down', bytes, signal, total)
  const expected = total === undefined ? undefined : total - offset
  return {
    offset,
    total,
    get stream() {
      return answer.stream(expected, spend)
    },
    async bytes() {
      if (expected === undefined)
        throw answers.damagedAnswer('the download', 'it does not say how long it is')
      try {
        await spend(expected)
      } catch (error) {
        answer.leave()
        throw error
      }
      return await answer.bytes(expected)
    },
  }
}

/** Where the answer's bytes begin, and of how many; undefined where they are others than were asked for. */
function sentRange(answer: Answer, wanted: number): Pick<Download, 'offset' | 'total'> | undefined {
  if (answer.status === 200) return { offset: 0, total: parsedCount(answer.headers.get('content-length')) }
  const range = /^bytes (\d{1,15})-(\d{1,15})\/(\d{1,15}|\*)$/i.exec(
    answer.headers.get('content-range') ?? '',
  )
  if (!range || Number(range[1]) !== wanted) return undefined
  const total = parsedCount(range[3]!)
  return total !== undefined && Number(range[2]) !== total - 1 ? undefined : { offset: wanted, total }
}

function parsedCount(text: string | null): number | undefined {
  return text !== null && /^\d{1,15}$/.test(text) ? Number(text) : undefined
}

function isAddressEnded(error: unknown): boolean {
  return error instanceof TidemarkError && error.code === 'download-address'
}
