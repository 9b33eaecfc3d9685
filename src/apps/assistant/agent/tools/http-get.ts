/**
 * Reads a page of the web: by https, from hosts and paths that the profile names, and from no others.
 *
 * Invariants:
 * - nothing is asked of a host or a path that is not named, by no redirect either; no query leaves this machine unless
 *   the profile names that very path for it
 * - nothing is asked of an address inside a network: what a name leads to is checked by the connection that is made to
 *   it (base/pinned-fetch.ts), for each redirect anew
 * - no cookies, no credentials, no body; the answer is bounded in bytes and in time, and is text
 */
import { asTidemarkError } from '../../../../base/errors.ts'
import type { PinnedFetch } from '../../../../base/pinned-fetch.ts'
import { ACTION_ARGUMENTS, type ActionGrant, checkAction } from '../../guard/actions.ts'
import { type AgentTool, defineTool, ToolRefusal } from '../tool.ts'

const REDIRECTS_MAX = 3
const BYTES_MAX = 200_000
const TIMEOUT_MS = 15_000
const REDIRECTS = [301, 302, 303, 307, 308]
const TEXT_TYPES = /^(?:text\/[\w.+-]+|application\/(?:[\w.+-]+\+)?(?:json|xml))\s*(?:;|$)/i

export type HttpParts = {
  /** Connects to no address that it has not checked, and follows nothing by itself. */
  web: PinnedFetch
  /** Asked for each address that a page leads to; for the first one it was, before the tool is run. */
  grant: ActionGrant
}

export function httpGet({ web, grant }: HttpParts): AgentTool {
  return defineTool('http_get', {
    description: `Reads a page by https. Allowed: ${grant.http.flatMap(({ host, paths }) => paths.map((path) => host + path)).join(', ')}`,
    input: ACTION_ARGUMENTS.http_get,
    effect: 'none',
    timeoutMs: TIMEOUT_MS,
    run: async ({ url }, { signal }) => {
      let next = new URL(url)
      for (let n = 0; n <= REDIRECTS_MAX; n++) {
        const response = await web(next.href, {
          method: 'GET',
          redirect: 'manual',
          credentials: 'omit',
          headers: { accept: 'text/*, application/json', 'user-agent': 'tidemark' },
          signal,
        }).catch(refused)
        const location = REDIRECTS.includes(response.status) ? response.headers.get('location') : null
        if (location === null) return await answerOf(response)
        await leave(response)
        const target = URL.parse(location, next.href)
        if (!target) throw new ToolRefusal('address', 'The page leads to something that is no address.')
        target.hash = ''
        const check = checkAction({ name: 'http_get', input: { url: target.href } }, grant)
        if (!check.isAllowed) throw new ToolRefusal(check.code, `The page leads elsewhere: ${check.reason}`)
        next = target
      }
      throw new ToolRefusal('redirects', `The page leads on more than ${REDIRECTS_MAX} times.`)
    },
  })
}

const REFUSALS: Readonly<Record<string, string>> = { 'host-unknown': 'host', 'host-inside': 'inside' }

function refused(thrown: unknown): never {
  const { code = '', message } = asTidemarkError(thrown)
  if (REFUSALS[code] !== undefined) throw new ToolRefusal(REFUSALS[code], message)
  throw thrown
}

async function answerOf(response: Response): Promise<{ text: string; quote: string }> {
  const type = response.headers.get('content-type') ?? ''
  if (!TEXT_TYPES.test(type)) {
    await leave(response)
    throw new ToolRefusal('not-text', 'The page is no text.')
  }
  const { text, isCut } = await boundedText(response)
  const note = isCut ? ` Only its first ${BYTES_MAX} bytes were read.` : ''
  return { text: `Status ${response.status}.${note}`, quote: text }
}

async function boundedText(response: Response): Promise<{ text: string; isCut: boolean }> {
  const chunks: Uint8Array[] = []
  let left = BYTES_MAX
  let isCut = false
  for await (const chunk of response.body ?? []) {
    chunks.push(chunk.subarray(0, left))
    left -= chunk.byteLength
    // Leaving the loop ends the body.
    if (left < 0) {
      isCut = true
      break
    }
  }
  return { text: Buffer.concat(chunks).toString('utf8'), isCut }
}

/** Nobody reads the rest. */
async function leave(response: Response): Promise<void> {
  await response.body?.cancel().catch(() => undefined)
}
