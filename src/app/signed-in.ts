/** Streams that wait for a sign-in go on once their account has signed in, whichever app they belong to. */
import { SIGN_IN } from '../ledger/control.ts'
import type { Runtime } from './runtime.ts'

/** What an app keeps in step, and the account with which it does. */
export type AccountSource = { stream: string; account: string }

/** `service`: whose accounts they are. Other pauses of these streams stay. */
export async function resumeSignedIn(
  { engine, ledger, accounts }: Pick<Runtime, 'engine' | 'ledger' | 'accounts'>,
  service: string,
  sources: readonly AccountSource[],
): Promise<void> {
  for (const { scope, target, code } of await ledger.pauses()) {
    if (scope !== 'stream' || code !== SIGN_IN) continue
    const source = sources.find(({ stream }) => stream === target)
    const account = source && (await accounts.find(service, source.account))
    if (account?.state !== 'ready') continue
    // What was put off until somebody has signed in need not wait any longer.
    await ledger.wakeStream(target)
    await engine.resume('stream', target, SIGN_IN)
  }
}
