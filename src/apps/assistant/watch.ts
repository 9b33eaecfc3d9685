/** Has Gmail push what happens in a mailbox. A watch ends after a week: it is renewed when the process starts, and daily. */
import { asTidemarkError } from '../../base/errors.ts'
import type { Outcome, RunContext } from '../../engine/index.ts'
import type { AccountPayload, AssistKinds } from './kinds.ts'
import { noteWatch } from './store/accounts.ts'

export async function runWatch(kinds: AssistKinds, job: RunContext<AccountPayload>): Promise<Outcome> {
  const { account: name } = job.payload
  const { pushTopic } = kinds.settings
  if (pushTopic === undefined) return { skip: 'no topic for pushes is configured', code: 'no-topic' }
  const { client } = await kinds.accounts.get(name)
  try {
    // All labels: Rework and Done are set on mail that may have left the inbox.
    const { expiresMs } = await client.watch({ topicName: pushTopic }, { signal: job.signal })
    return {
      effects: (tx) => noteWatch(tx, name, { expiresAtMs: expiresMs, problem: null }),
      note: `until ${new Date(expiresMs).toISOString()}`,
      code: 'renewed',
    }
  } catch (thrown) {
    const { message } = asTidemarkError(thrown)
    await job.commit({ effects: (tx) => noteWatch(tx, name, { expiresAtMs: null, problem: message }) })
    throw thrown
  }
}
