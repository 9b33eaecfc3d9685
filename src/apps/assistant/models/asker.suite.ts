/** Asks a model in this process or in one of its own, for tests of the cap. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { systemClock } from '../../../base/clock.ts'
import { asTidemarkError } from '../../../base/errors.ts'
import type { Vault } from '../../../base/vault.ts'
import { type ModelsSettings, modelsSection } from '../../../cloud/models/settings.ts'
import type { Config } from '../../../config/settings.ts'
import type { Ledger } from '../../../ledger/ledger.ts'
import { openLedger } from '../../../ledger/open.ts'
import { type Models, type ModelsInput, openModels, type Question } from './ask.ts'
import { ModelCalls } from './store.ts'

export const ANN = 'ann@example.com'
export const MAIL = 'From: Ben <ben@example.com>\nSubject: Lunch\n\nCould you come on Friday?'

export type Asker = { models: Models; store: ModelCalls; settings: ModelsSettings }

/** Settings may be changed in place, as a reload does. */
export async function openAsker(
  ledger: Ledger,
  input: Partial<Record<keyof ModelsSettings, unknown>>,
  more: Partial<ModelsInput['place']> & Pick<ModelsInput, 'payerOf'> = {},
): Promise<Asker> {
  const settings = modelsSection.schema.parse({ provider: 'openai-compatible', model: 'sim-model', ...input })
  const store = await ModelCalls.open(ledger)
  const { payerOf, ...place } = more
  const models = openModels({
    place: {
      config: { models: settings } as Config,
      vault: undefined as unknown as Vault,
      fetch,
      clock: systemClock,
      ...place,
    },
    store,
    ...(payerOf && { payerOf }),
  })
  return { models, store, settings }
}

export function question<T>(more: Partial<Question<T>> = {}): Question<T> {
  return {
    account: ANN,
    purpose: 'classify',
    threadId: 't1',
    system: 'You sort mail.',
    messages: [{ role: 'user', text: MAIL }],
    signal: new AbortController().signal,
    ...more,
  }
}

export type Asked = { answered: number; costMicros: number; refused: number; errors: string[] }

/** Asks until the day's money is spent; `refused` counts how often others in flight were in the way. */
export async function askUntilSpent(models: Models): Promise<Asked> {
  const asked: Asked = { answered: 0, costMicros: 0, refused: 0, errors: [] }
  for (;;) {
    try {
      const { costMicros } = await models.ask(question())
      asked.answered += 1
      asked.costMicros += costMicros
    } catch (thrown) {
      const { code, message, retryAfterMs = 0 } = asTidemarkError(thrown)
      if (code !== 'model-budget') {
        asked.errors.push(message)
        return asked
      }
      // Others are at it: there may be something left when they are done.
      if (retryAfterMs > 60_000) return asked
      asked.refused += 1
      await new Promise((resolve) => setImmediate(resolve))
    }
  }
}

/** `nowMs`: a cap is of a day, and the processes must agree on it also at midnight. */
type Task = {
  url: string
  nowMs: number
  settings: Partial<Record<keyof ModelsSettings, unknown>>
  askers: number
}

/** In a process of its own. */
export async function askElsewhere(task: Task): Promise<Asked[]> {
  const child: ChildProcess = fork(import.meta.filename, [JSON.stringify(task)], { stdio: 'inherit' })
  const answer = once(child, 'message') as Promise<[Asked[]]>
  const [code] = (await once(child, 'exit')) as [number]
  if (code !== 0) throw new Error(`the process that asks ended with ${code}`)
  return (await answer)[0]
}

if (process.argv[1] === import.meta.filename) {
  const { url, nowMs, settings, askers } = JSON.parse(process.argv[2]!) as Task
  const ledger = await openLedger(url, { clock: { ...systemClock, now: () => nowMs } })
  const { models } = await openAsker(ledger, settings)
  const asked = await Promise.all(Array.from({ length: askers }, () => askUntilSpent(models)))
  await ledger.close()
  process.send!(asked, () => process.exit(0))
}
