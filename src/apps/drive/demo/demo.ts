/** The demo's Drives: three people who share documents, which go on being written, shared and taken back. */
import { pauseOf } from '../../../app/cli/ending.ts'
import { openedSources } from '../../../app/cli/with-app.ts'
import {
  type AppDemo,
  connectDemoAccount,
  type DemoCloud,
  type DemoPlace,
  type DemoSummary,
  demoSteps,
} from '../../../app/demo.ts'
import { sleep, systemClock } from '../../../base/clock.ts'
import { formatCount } from '../../../base/format.ts'
import { seededRandom } from '../../../base/random.ts'
import { DRIVE_SCOPE } from '../../../cloud/drive/auth.ts'
import { OWNER_ID } from '../../../ledger/accounts.ts'
import { SERVICE, streamOf } from '../account.ts'
import { driveApp } from '../app.ts'
import { type DriveRuntime, driveRuntime } from '../runtime.ts'
import { driveSource } from '../sources.ts'
import { balanceText, driveStatus } from '../status.ts'

const COLLEAGUES = ['ben@example.com', 'cleo@example.com']
const DOCUMENTS = 240
const FAST_DOCUMENTS = 30
const STEP_MS = 15_000
const STEPS_MAX = 5_000
const JOURNAL_FILE = 'demo-google-drive.jsonl'
const FAST_UNITS_PER_MINUTE = 100_000_000

export const driveDemo: AppDemo = {
  world: (place) => ({
    drive: {
      users: peopleOf(place),
      documents: place.isFast ? FAST_DOCUMENTS : DOCUMENTS,
      groups: [{ address: 'team@example.com', members: peopleOf(place).slice(0, 2) }],
      drives: [
        {
          name: 'Handbook',
          members: peopleOf(place).map((email, at) => ({ email, role: at === 0 ? 'organizer' : 'reader' })),
        },
      ],
      quota: { unitsPerMinute: null },
    },
  }),
  begin(cloud) {
    const { sim, isFast, seed } = cloud
    const next = demoSteps(cloud, { file: JOURNAL_FILE, max: STEPS_MAX }, (n) =>
      change(cloud, n, seededRandom(seed * 1_000_003 + n)),
    )
    const step = (): boolean => sim.drive.world.items.size > 0 && next()
    const people = peopleOf(cloud)
    return {
      config: `[google_drive]
api_url = "${sim.baseUrl}"
auth_url = "${sim.drive.authUrl}"
token_url = "${sim.drive.tokenUrl}"
revoke_url = "${sim.drive.revokeUrl}"
client_id = "${sim.drive.clientId}"
client_secret = "${sim.drive.clientSecret}"
${isFast ? `units_per_minute = ${FAST_UNITS_PER_MINUTE}\n` : ''}
[drive]
poll_minutes = 1
`,
      intro: () =>
        `It indexes the Drives of ${people.join(', ')}, who share documents: each finds what they may see.`,
      places: [['/drive', 'the Drives of all: what is listed, indexed, skipped and why']],
      connect: (runtime) => connect(driveRuntime(runtime), cloud),
      live: (runtime, stop) => live(driveRuntime(runtime), { people, step, stop }),
      settle: (runtime, stop) => settle(driveRuntime(runtime), people, stop),
      summary: (runtime) => summary(driveRuntime(runtime), people),
    }
  },
}

function peopleOf({ address }: Pick<DemoPlace, 'address'>): string[] {
  return [address, ...COLLEAGUES]
}

/** A document is written, shared with a colleague, or taken back. */
function change({ sim, address }: DemoCloud, n: number, random: () => number): void {
  const { world } = sim.drive
  const colleague = COLLEAGUES[Math.floor(random() * COLLEAGUES.length)]!
  const notes = [...world.items.values()].filter(
    ({ name, owner }) => owner === address && /^Note \d+/.test(name),
  )
  const note = notes[Math.floor(random() * notes.length)]
  if (!note || n % 3 === 0) {
    const content = `Note ${n} of the demo: the ${SUBJECTS[n % SUBJECTS.length]} was discussed with ${colleague}.`
    const made = world.create({ name: `Note ${n}.txt`, by: address, content })
    if (random() < 0.5) world.share(made.id, { type: 'user', role: 'reader', email: colleague })
    return
  }
  const isShared = [...note.permissions.values()].some(({ email }) => email === colleague)
  if (n % 3 === 1 && isShared) world.unshare(note.id, colleague)
  else if (n % 3 === 1) world.share(note.id, { type: 'user', role: 'reader', email: colleague })
  else world.edit(note.id, `Note of the demo, written anew: the ${SUBJECTS[n % SUBJECTS.length]} is settled.`)
}

const SUBJECTS = [
  'summer party',
  'budget',
  'move to the new office',
  'hiring plan',
  'release',
  'canteen menu',
]

async function connect(runtime: DriveRuntime, { sim, address }: DemoCloud): Promise<void> {
  const { clientId, clientSecret } = sim.drive
  const { users } = runtime
  for (const name of peopleOf({ address })) {
    const { refreshToken } = sim.drive.issue(name, [DRIVE_SCOPE])
    const user =
      name === address ? undefined : ((await users.find(name)) ?? (await users.add({ name, role: 'member' })))
    await connectDemoAccount(
      runtime,
      { service: SERVICE, name, settings: {}, userId: user?.id ?? OWNER_ID },
      { clientId, clientSecret, refreshToken, scopes: [DRIVE_SCOPE] },
    )
  }
}

type Living = { people: readonly string[]; step: () => boolean; stop: AbortSignal }

/** Something happens, and is looked for at once. */
async function live(runtime: DriveRuntime, { people, step, stop }: Living): Promise<void> {
  for (;;) {
    await sleep(systemClock, STEP_MS, stop).catch(() => {})
    if (stop.aborted || !step()) return
    await follow(runtime, people)
  }
}

async function follow({ engine, drive }: DriveRuntime, people: readonly string[]): Promise<void> {
  for (const account of people) {
    const stream = streamOf(account)
    await engine.streams.open(stream)
    await engine.enqueue(drive.kinds.sync, { account }, { stream })
  }
}

const LOOK_MS = 100

async function settle(runtime: DriveRuntime, people: readonly string[], stop: AbortSignal): Promise<void> {
  await follow(runtime, people)
  while (!stop.aborted && !(await summary(runtime, people)).isSettled) {
    await sleep(systemClock, LOOK_MS, stop).catch(() => {})
  }
}

async function summary(runtime: DriveRuntime, people: readonly string[]): Promise<DemoSummary> {
  const { ledger, drive } = runtime
  const all = await driveStatus(ledger, drive.tables, people)
  const failed = all.reduce((sum, one) => sum + one.failedJobs, 0)
  const [first] = all
  const pauses = await Promise.all(
    people.map((name) => pauseOf(openedSources(driveApp, runtime), driveSource(name))),
  )
  const isOpen = all.some(({ feeds, onTheirWay, lastSyncAtMs }) => {
    const isListed = feeds.length > 0 && feeds.every(({ state }) => state === 'following')
    return !isListed || onTheirWay > 0 || lastSyncAtMs === null
  })
  return {
    text: first ? `${balanceText(first)}; ${formatCount(all.length)} people.` : '',
    isSettled: all.length > 0 && !isOpen,
    hasFailed: failed > 0,
    paused: pauses.find((pause) => pause)?.reason ?? null,
    json: all,
  }
}
