/** The demo's mailbox: from a seed, two messages of it can never be read, and mail that keeps arriving. */
import { join } from 'node:path'
import { z } from 'zod'
import { pauseOf } from '../../../app/cli/ending.ts'
import { SyncProgress } from '../../../app/cli/progress.ts'
import { untilSettled } from '../../../app/cli/settling.ts'
import { openedSources } from '../../../app/cli/with-app.ts'
import { type AppDemo, type DemoCloud, DemoJournal, type DemoSummary } from '../../../app/demo.ts'
import type { Runtime } from '../../../app/runtime.ts'
import { sleep, systemClock } from '../../../base/clock.ts'
import { formatCount } from '../../../base/format.ts'
import { seededRandom } from '../../../base/random.ts'
import { GMAIL_SCOPES } from '../../../cloud/gmail/auth.ts'
import { accountKey } from '../../../ledger/accounts.ts'
import type { Sim } from '../../../sim/start.ts'
import { streamOf } from '../account.ts'
import { mailApp } from '../app.ts'
import { type MailRuntime, mailRuntime } from '../runtime.ts'
import { mailSource } from '../sources.ts'
import { balanceText, mailStatus } from '../status.ts'

/** 75 messages a second: a real mailbox of a new project gets 5. */
const UNITS_PER_MINUTE = 90_000
const FAST_UNITS_PER_MINUTE = 100_000_000
/** So that a demo that is left alone for days does not grow without end. */
const ARRIVALS_MAX = 20_000
const ARRIVE_MS = 4_000
const YEARS = 5
const POISON_SHARES = [0.31, 0.74]
/** Telling for certain that a message cannot be read takes half a minute: not for a small mailbox. */
const POISON_MESSAGES_MIN = 1_000
const DAY_MS = 86_400_000
const JOURNAL_FILE = 'demo-arrivals.jsonl'
const arrivalSchema = z.object({ n: z.int().min(0), atMs: z.int() })

export const mailDemo: AppDemo = {
  world: ({ address, messages, toMs, isFast }) => ({
    gmail: {
      quota: { unitsPerMinute: isFast ? null : UNITS_PER_MINUTE },
      accounts: [{ address, messages, fromMs: toMs - YEARS * 365 * DAY_MS, toMs }],
    },
  }),
  begin(cloud) {
    const { sim, address, messages, isFast } = cloud
    poison(cloud)
    const arrive = arrivals(cloud)
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

/** What had arrived arrives again. Returns how one more does; false when there were enough. */
function arrivals({ sim, address, seed, home, at }: DemoCloud): () => boolean {
  const journal = new DemoJournal(join(home, JOURNAL_FILE), arrivalSchema)
  const happen = ({ n, atMs }: z.output<typeof arrivalSchema>): void => {
    at(atMs, () => sim.gmail.mutations(address).arrive({}, seededRandom(seed * 1_000_003 + n)))
  }
  for (const arrival of journal.before) happen(arrival)
  return () => {
    if (journal.size >= ARRIVALS_MAX) return false
    const arrival = { n: journal.size, atMs: systemClock.now() }
    journal.note(arrival)
    happen(arrival)
    return true
  }
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

/** Anew at every start: a cloud that was started again knows only the tokens that it gave out first. */
async function connect({ accounts, vault }: Runtime, sim: Sim): Promise<void> {
  for (const { address, refreshToken } of sim.gmail.accounts) {
    const account = { service: 'gmail', name: address }
    const secret = {
      kind: 'oauth',
      clientId: sim.gmail.clientId,
      clientSecret: sim.gmail.clientSecret,
      refreshToken,
      scopes: [GMAIL_SCOPES.full],
      obtainedAtMs: systemClock.now(),
    }
    const sealed = vault.seal(accountKey(account), JSON.stringify(secret))
    const found = await accounts.find('gmail', address)
    if (found) {
      await accounts.setSealed(found.id, sealed)
      await accounts.setState(found.id, 'ready')
    } else await accounts.add({ ...account, settings: { spam: true, trash: true }, sealed })
  }
}
