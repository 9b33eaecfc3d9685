/** The demo's assistant: it sorts the simulated mailbox with a simulated language model, and letters that ask for something keep coming. */
import { join } from 'node:path'
import { z } from 'zod'
import { pauseOf } from '../../../app/cli/ending.ts'
import { openedSources } from '../../../app/cli/with-app.ts'
import { type AppDemo, type DemoCloud, DemoJournal, type DemoSummary } from '../../../app/demo.ts'
import { sleep, systemClock } from '../../../base/clock.ts'
import { asTidemarkError } from '../../../base/errors.ts'
import { seededRandom } from '../../../base/random.ts'
import { streamOf } from '../account.ts'
import { requestSync } from '../actions.ts'
import { assistApp } from '../app.ts'
import { agreeToBacklog } from '../backlog.ts'
import { onboard } from '../onboard.ts'
import { type AssistRuntime, assistRuntime } from '../runtime.ts'
import { assistSource } from '../sources.ts'
import { assistStatus, balanceText } from '../status.ts'
import { LETTERS, letter } from './letters.ts'

const STEP_MS = 20_000
/** There from the beginning, so that the first look finds something to do. */
const FIRST_LETTERS = 4
const JOURNAL_FILE = 'demo-letters.jsonl'
const MODEL = 'simulated-model'
const stepSchema = z.object({ n: z.int().min(0), atMs: z.int() })

export const assistDemo: AppDemo = {
  world: () => ({ models: { models: [MODEL] } }),
  begin(cloud) {
    const { sim, address } = cloud
    const step = letters(cloud)
    return {
      config: `[models]
provider = "openai-compatible"
base_url = "${sim.models.baseUrl}"
model = "${MODEL}"
input_price = 0.15
output_price = 0.6
`,
      intro: () =>
        'It sorts new mail by labels and drafts answers with a simulated language model; it sends nothing.',
      places: [['/assist', 'mail by category, drafts to review, and why each was sorted so']],
      connect: (runtime) => connect(assistRuntime(runtime), address),
      live: (runtime, stop) => live(assistRuntime(runtime), { address, step, stop }),
      settle: (runtime, stop) => settle(assistRuntime(runtime), address, stop),
      summary: (runtime) => summary(assistRuntime(runtime), address),
    }
  },
}

/** What had come comes again. Returns how one more does; false when all have come. */
function letters({ sim, address, seed, home, at }: DemoCloud): () => boolean {
  const journal = new DemoJournal(join(home, JOURNAL_FILE), stepSchema)
  const happen = ({ n, atMs }: z.output<typeof stepSchema>): void => {
    at(atMs, () => {
      const raw = Buffer.from(letter(LETTERS[n]!, { to: address, atMs, n }))
      const arrival = { raw, labelIds: ['INBOX', 'UNREAD'], internalMs: atMs }
      sim.gmail.mutations(address).arrive(arrival, seededRandom(seed + n))
    })
  }
  const step = (): boolean => {
    if (journal.size >= LETTERS.length) return false
    const next = { n: journal.size, atMs: systemClock.now() }
    journal.note(next)
    happen(next)
    return true
  }
  for (const before of journal.before) if (before.n < LETTERS.length) happen(before)
  while (journal.size < FIRST_LETTERS && step());
  return step
}

const CONNECT_TRIES_MAX = 20
const CONNECT_WAIT_MS = 200

/** As if a person had switched it on, who tries again where the cloud stumbles; again changes nothing. */
async function connect({ engine, accounts, vault, assist }: AssistRuntime, address: string): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      await onboard({ engine, kinds: assist.kinds, accounts, vault }, address)
      // The money is simulated, too.
      await agreeToBacklog({ engine, kinds: assist.kinds }, address, { ahead: true })
      return
    } catch (thrown) {
      const { kind } = asTidemarkError(thrown)
      if (tries >= CONNECT_TRIES_MAX || (kind !== 'transient' && kind !== 'throttled')) throw thrown
      await sleep(systemClock, CONNECT_WAIT_MS)
    }
  }
}

type Living = { address: string; step: () => boolean; stop: AbortSignal }

/** A letter comes, and is looked for at once: a real mailbox would push. */
async function live(runtime: AssistRuntime, { address, step, stop }: Living): Promise<void> {
  for (;;) {
    await sleep(systemClock, STEP_MS, stop).catch(() => {})
    if (stop.aborted) return
    step()
    await follow(runtime, address)
  }
}

async function follow({ engine, assist }: AssistRuntime, address: string): Promise<void> {
  await requestSync({ engine, kinds: assist.kinds }, address)
}

const LOOK_MS = 100

async function settle(runtime: AssistRuntime, address: string, stop: AbortSignal): Promise<void> {
  await follow(runtime, address)
  while (!stop.aborted && !(await summary(runtime, address)).isSettled) {
    await sleep(systemClock, LOOK_MS, stop).catch(() => {})
  }
}

async function summary(runtime: AssistRuntime, address: string): Promise<DemoSummary> {
  const { ledger, assist } = runtime
  const [status] = await assistStatus(ledger, assist.tables, [address])
  if (!status) return { text: '', isSettled: false, hasFailed: false, paused: null, json: undefined }
  const open = await ledger.jobs({ state: 'pending', stream: streamOf(address), limit: 1 })
  return {
    text: `${balanceText(status)}; ${status.draftsWaiting} drafts to review.`,
    isSettled:
      status.lastSyncAtMs !== null &&
      status.onTheirWay === status.held &&
      (open.length === 0 || status.openJobs === 0),
    hasFailed: status.failedJobs > 0,
    paused: (await pauseOf(openedSources(assistApp, runtime), assistSource(address)))?.reason ?? null,
    json: status,
  }
}
