/** The demo's mailbox: from a seed, two messages of it can never be read, and mail that keeps arriving. */
import { pauseOf } from '../../../app/cli/ending.ts'
import { SyncProgress } from '../../../app/cli/progress.ts'
import { untilSettled } from '../../../app/cli/settling.ts'
import { openedSources } from '../../../app/cli/with-app.ts'
import {
  type AppDemo,
  connectDemoAccount,
  type DemoCloud,
  type DemoSummary,
  demoSteps,
} from '../../../app/demo.ts'
import type { Runtime } from '../../../app/runtime.ts'
import { sleep, systemClock } from '../../../base/clock.ts'
import { formatCount } from '../../../base/format.ts'
import { seededRandom } from '../../../base/random.ts'
import { GMAIL_SCOPES } from '../../../cloud/gmail/auth.ts'
import type { Sim } from '../../../sim/start.ts'
import { streamOf } from '../account.ts'
import { mailApp } from '../app.ts'
import { type MailRuntime, mailRuntime } from '../runtime.ts'
import { mailSource } from '../sources.ts'
import { balanceText, mailStatus } from '../status.ts'

/** 75 messages a second: a real mailbox of a new project gets 5. */
const UNITS_PER_MINUTE = 90_000
const FAST_UNITS_PER_MINUTE = 100_000_000
const ARRIVALS_MAX = 20_000
const ARRIVE_MS = 4_000
const YEARS = 5
const POISON_SHARES = [0.31, 0.74]
/** Telling for certain that a message cannot be read takes half a minute: not for a small mailbox. */
const POISON_MESSAGES_MIN = 1_000
const DAY_MS = 86_400_000
const JOURNAL_FILE = 'demo-arrivals.jsonl'

export const mailDemo: AppDemo = {
  world: ({ address, messages, toMs, isFast }) => ({
    gmail: {
      quota: { unitsPerMinute: isFast ? null : UNITS_PER_MINUTE },
      accounts: [{ address, messages, fromMs: toMs - YEARS * 365 * DAY_MS, toMs }],
    },
  }),
  begin(cloud) {
    const { sim, address, messages, isFast, seed } = cloud
    poison(cloud)
    const arrive = demoSteps(cloud, { file: JOURNAL_FILE, max: ARRIVALS_MAX }, (n) =>
      sim.gmail.mutations(address).arrive({}, seededRandom(seed * 1_000_003 + n)),
    )
    return {
      config: `[gmail]
api_url = "${sim.baseUrl}"
auth_url = "${sim.gmail.authUrl}"
token_url = "${sim.gmail.tokenUrl}"
revoke_url = "${sim.gmail.revokeUrl}"
client_id = "${sim.gmail.clientId}"
client_secret = "${sim.gmail.clientSecret}"
units_per_minute = ${isFast ? FAST_UNITS_PER_MINUTE : UNITS_PER_MINUTE}
requests_per_second_start = ${isFast ? 1_000 : 20}
requests_per_second_max = ${isFast ? 10_000 : 100}

[mail]
slice = "month"
batch = 50
poll_minutes = 1
`,
      intro: ({ isNew }) =>
        isNew
          ? `It copies a simulated mailbox of ${formatCount(messages)} messages, ${address}, from a cloud that stumbles now and then.`
          : `It goes on with the simulated mailbox ${address}.`,
      places: [
        [`/streams/${encodeURIComponent(streamOf(address))}`, 'the mailbox as a picture, slice by slice'],
        ['/search?q=invoice', 'all mail that is stored, found at once'],
      ],
      connect: (runtime) => connect(runtime, sim),
      live: (runtime, stop) => live(mailRuntime(runtime), { address, arrive, stop }),
      settle: async (runtime) => follow(mailRuntime(runtime), address),
      summary: (runtime) => summary(mailRuntime(runtime), address),
      progress(context, runtime, below) {
        const opened = openedSources(mailApp, runtime)
        const sources = [mailSource(address)]
        const progress = new SyncProgress(context, opened, sources, below)
        return {
          settle: (stop) => untilSettled(context, opened, { sources, stop, patienceMs: undefined, progress }),
          show: () => progress.show(),
          end: () => progress.end(),
        }
      },
    }
  },
}

function poison({ sim, address }: DemoCloud): void {
  const ids = [...sim.gmail.mailbox(address).dump()].map(({ id }) => id)
  if (ids.length < POISON_MESSAGES_MIN) return
  for (const share of POISON_SHARES)
    sim.faults.poison({ id: ids[Math.floor(ids.length * share)]!, mode: 'part' })
}

type Living = { address: string; arrive: () => boolean; stop: AbortSignal }

/** New mail keeps arriving, and is looked for at once: a real mailbox would send a notification. */
async function live(runtime: MailRuntime, { address, arrive, stop }: Living): Promise<void> {
  for (;;) {
    await sleep(systemClock, ARRIVE_MS, stop).catch(() => {})
    if (stop.aborted || !arrive()) return
    const [status] = await mailStatus(runtime.ledger, runtime.mail.tables, [address])
    if (status && status.phase !== 'new' && !status.paused) await follow(runtime, address)
  }
}

async function follow({ engine, mail }: MailRuntime, account: string): Promise<void> {
  await engine.enqueue(mail.kinds.history, { account }, { stream: streamOf(account) })
}

async function summary(runtime: MailRuntime, address: string): Promise<DemoSummary> {
  const { ledger, mail } = runtime
  const [status] = await mailStatus(ledger, mail.tables, [address])
  if (!status) return { text: '', isSettled: false, hasFailed: false, paused: null, json: undefined }
  const failed = await ledger.jobs({ state: 'failed', stream: streamOf(address), limit: 1 })
  return {
    text: `${balanceText(status, formatCount)}.`,
    isSettled: status.phase !== 'new' && status.onTheirWay === 0 && status.settledSlices === status.slices,
    hasFailed: status.unbalanced > 0 || failed.length > 0,
    paused: (await pauseOf(openedSources(mailApp, runtime), mailSource(address)))?.reason ?? null,
    json: status,
  }
}

async function connect(runtime: Runtime, { gmail }: Sim): Promise<void> {
  const { clientId, clientSecret } = gmail
  for (const { address, refreshToken } of gmail.accounts) {
    const account = { service: 'gmail', name: address, settings: { spam: true, trash: true } }
    await connectDemoAccount(runtime, account, {
      clientId,
      clientSecret,
      refreshToken,
      scopes: [GMAIL_SCOPES.full],
    })
  }
}
