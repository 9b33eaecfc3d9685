/** A sign-in where no browser can come back to this machine: the person pastes the address that it was sent to. */
import { UsageError } from '../../base/errors.ts'
import { readRedirect } from '../../cloud/oauth.ts'
import type { Output } from '../output/output.ts'
import type { Lines } from '../output/prompt.ts'
import { refusedError, type SignInSteps } from './loopback.ts'

/** Nothing listens there: the browser shows an error, with the address that is to be pasted. */
const PASTE_REDIRECT = 'http://127.0.0.1:1'
const PASTE_TRIES_MAX = 3

export async function signInByPaste<T>(steps: SignInSteps<T>, lines: Lines, output: Output): Promise<T> {
  steps.ask(PASTE_REDIRECT)
  output.note('After you have signed in, the browser shows an error page: that is as it should be.')
  for (let tries = 1; tries <= PASTE_TRIES_MAX; tries += 1) {
    const text = await lines.next(`Paste its address (it begins with ${PASTE_REDIRECT}), or just the code: `)
    if (text === undefined) break
    const redirect = readPasted(text, steps.state)
    if (redirect.kind === 'refused') throw refusedError(redirect.error, steps.hints)
    if (redirect.kind === 'code') return steps.finish(redirect.code, PASTE_REDIRECT)
    output.note(
      /[?&]code=/.test(text)
        ? 'That is the answer to another sign-in: open the address above and paste what it leads to.'
        : 'That is neither such an address nor a code.',
    )
  }
  throw new UsageError('Nothing was pasted that completes the sign-in.', {
    code: 'nothing-pasted',
    hint: 'Run the command again, and paste the whole address from the browser.',
  })
}

/** An address must bring our state; a code alone is bound to this sign-in by its verifier. */
function readPasted(text: string, state: string): ReturnType<typeof readRedirect> {
  if (URL.canParse(text)) return readRedirect(new URL(text).searchParams, state)
  const query = new URLSearchParams(text.replace(/^\?/, ''))
  if (query.has('code') || query.has('error')) return readRedirect(query, state)
  const code = /^[\w/.~%+-]{10,2048}$/.test(text) ? decoded(text) : undefined
  return code ? { kind: 'code', code } : { kind: 'strange' }
}

/** Copied out of an address bar, `4/0A…` reads `4%2F0A…`. */
function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}
