/** What is told to a person who asks for a source to be looked at now, instead of when its time comes. */
import { plural } from '../base/wording.ts'
import { conflict, type ProblemError } from './problem.ts'
import type { Services } from './services.ts'

export function signInNeeded(accounts: readonly string[]): ProblemError {
  const have = plural(accounts.length, 'has', 'have')
  return conflict(`${accounts.join(', ')} ${have} to sign in again first.`, {
    code: 'sign-in-needed',
    hint: 'Connect the account again on the page of settings.',
  })
}

/** What of it waits although it was asked for; '' where nothing is paused. */
export async function pauseNote(
  { ledger }: Pick<Services, 'ledger'>,
  sources: readonly { name: string; stream: string }[],
): Promise<string> {
  const pauses = await ledger.pauses()
  const isPaused = (stream: string): boolean =>
    pauses.some(({ scope, target }) => scope === 'stream' && target === stream)
  const paused = pauses.some(({ scope }) => scope === 'all')
    ? ['everything']
    : sources.filter(({ stream }) => isPaused(stream)).map(({ name }) => name)
  return paused.length === 0 ? '' : ` Paused, so it waits: ${paused.join(', ')}.`
}
