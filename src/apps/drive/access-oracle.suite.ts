/**
 * Runs a random history of sharing against the index, and compares what each person finds with what Drive lets them:
 *
 * - after each sync of all, everybody finds exactly what Drive lets them find
 * - at every moment, while accounts look one by one, nobody finds a text or a name, nor that of a folder, that Drive never
 *   let them find
 * - what the newest list of permissions that is known here leaves to others is found by nobody else
 *
 * Moments are those while a sync runs, those after a part of the accounts has looked, and those after a kill.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { sleep, systemClock } from '../../base/clock.ts'
import { type Random, seededRandom } from '../../base/random.ts'
import { BIN } from '../../cli/jobs/jobs.suite.ts'
import { FOLDER } from '../../cloud/drive/client.ts'
import { openLedger } from '../../ledger/open.ts'
import { openSearch, type Search } from '../../search/search.ts'
import type { FaultsInput } from '../../sim/fault-rules.ts'
import { streamOf } from './account.ts'
import { ANN, BOB, CAT, type DriveTestWorld, startDriveWorld } from './drive-world.suite.ts'
import { type Act, actOnce, pick } from './sharing-history.suite.ts'

export type HistoryOptions = {
  acts: number
  syncEvery: number
  ledgerUrl?: string
  faults?: boolean
  /** Before each sync so many processes are begun on the same ledger, and killed. */
  kills?: number
}

const GROUPS = ['sales@example.com', 'board@example.com']
const PEOPLE = [ANN, BOB, CAT]

const WEATHER: FaultsInput = {
  rules: [
    { do: 'error', status: 503, probability: 0.03 },
    { do: 'reset', when: 'before', probability: 0.01 },
    { do: 'truncate', probability: 0.01 },
    { do: 'throttle', status: 403, reason: 'userRateLimitExceeded', everyNth: 61 },
  ],
}

/** By what a killed process was at: jobs of it were claimed, only others waited, nothing was to be done, or it had ended. */
export type KillCounts = { working: number; waiting: number; idle: number; ended: number }

export type HistoryResult = {
  /** What was found wrong, with the acts that led to it; undefined where nothing was. */
  wrong: string | undefined
  kills: KillCounts
  /** How often it was looked what everybody finds, besides the looks after whole syncs. */
  moments: number
}

/** Before a sync of all, one account alone looks, so often. */
const ALONE_SHARE = 0.6

export async function runSharingHistory(seed: number, options: HistoryOptions): Promise<HistoryResult> {
  const { acts, syncEvery, ledgerUrl, faults, kills = 0 } = options
  const random = seededRandom(seed)
  const weather = faults ? WEATHER : { rules: [] }
  const world = await startDriveWorld({
    users: PEOPLE,
    drive: {
      groups: GROUPS.map((address, at) => ({ address, members: PEOPLE.slice(at, at + 2) })),
      drives: [{ name: 'Legal', members: [{ email: ANN, role: 'organizer' }] }],
      tellsBelow: seed % 2 === 0,
    },
    sim: { seed, faults: weather },
    ...(ledgerUrl !== undefined && { ledgerUrl }),
  })
  const place = {
    world: world.world,
    random,
    people: PEOPLE,
    groups: GROUPS,
    nowMs: () => world.clock.now(),
  }
  const told: string[] = []
  const killed: KillCounts = { working: 0, waiting: 0, idle: 0, ended: 0 }
  const witness = new Witness(world)
  const result = (wrong: string | undefined): HistoryResult => {
    const history = told.map((line) => `  ${line}`).join('\n')
    return {
      wrong: wrong && `seed ${seed}, after ${told.length} steps: ${wrong}\n${history}`,
      kills: killed,
      moments: witness.moments,
    }
  }
  try {
    let isUntold = false
    for (let n = 1; n <= acts; n++) {
      const act: Act = actOnce(place, n)
      told.push(act.text)
      isUntold ||= act.untold ?? false
      // Processes of their own have the clock of the machine.
      if (kills === 0) world.clock.aheadMs += act.aheadMs ?? 0
      witness.note()
      if (n % syncEvery !== 0 && n !== acts) continue
      if (random() < ALONE_SHARE) {
        const person = pick(random, PEOPLE)
        told.push(`-- ${person} syncs alone`)
        await syncAlone(world, witness, person)
      }
      if (kills > 0) await killSyncs(world, random, { kills, killed, weather, witness })
      await world.wantDomain()
      told.push(isUntold ? '-- everything is listed anew' : '-- sync')
      await witness.watch(isUntold ? world.relist() : world.sync())
      const wrong = witness.wrong ?? (await differences(world))
      if (wrong) return result(wrong)
      isUntold = false
    }
    return result(undefined)
  } finally {
    await world.close()
  }
}

/** What Drive has ever let each person find, and whether the index tells them more. */
class Witness {
  readonly #world: DriveTestWorld
  /** By person and document: its names, and the numbers of its texts. */
  readonly #allowed = new Map<string, Set<string>>()
  /** By person: the names of folders and drives. */
  readonly #folders = new Map<string, Set<string>>()
  moments = 0
  /** The first that was found. */
  wrong: string | undefined

  constructor(world: DriveTestWorld) {
    this.#world = world
  }

  /** After every act: what can be found now could have been looked at now. */
  note(): void {
    const { world } = this.#world
    const places = [...world.items.values()].filter(
      ({ mimeType, isDeleted }) => mimeType === FOLDER && !isDeleted,
    )
    for (const person of PEOPLE) {
      const folders = this.#folders.getOrInsertComputed(person, () => new Set())
      for (const one of places) if (world.access(world.user(person), one)) folders.add(one.name)
      for (const id of this.#world.truth(person)) {
        const { name, content } = this.#world.world.item(id)
        const allowed = this.#allowed.getOrInsertComputed(`${person} ${id}`, () => new Set())
        for (const piece of [name, numberIn(content?.text() ?? '')]) if (piece) allowed.add(piece)
      }
    }
  }

  /** Looks again and again until it is done. */
  async watch(work: Promise<void>): Promise<void> {
    let isDone = false
    const done = work.finally(() => {
      isDone = true
    })
    while (!isDone && this.wrong === undefined) {
      await this.look(this.#world.search)
      await Promise.race([done, sleep(systemClock, LOOK_MS)])
    }
    await done
    await this.look(this.#world.search)
  }

  /** By the search itself: titles and snippets are what people read. */
  async look(search: Search): Promise<void> {
    this.moments += 1
    for (const person of PEOPLE) {
      let cursor: string | undefined
      do {
        const answer = await search.search({
          text: 'number OR shortcut',
          reader: { principals: [streamOf(person)] },
          mode: 'words',
          copies: 'apart',
          limit: 50,
          nowMs: this.#world.clock.now(),
          signal: new AbortController().signal,
          ...(cursor && { cursor }),
        })
        for (const { ref, title, snippet, folders, alsoIn } of answer.hits) {
          const name = title.map(({ text }) => text).join('')
          const number = numberIn(snippet.map(({ text }) => text).join(''))
          const allowed = this.#allowed.get(`${person} ${ref}`)
          const more = [name, number].filter((piece) => piece && !allowed?.has(piece))
          if (more.length > 0)
            this.wrong ??= `${person} finds ${more.join(' and ')} of ${name} (${ref}), too early`
          const told = [folders, ...alsoIn.map((other) => other.folders)].flat()
          const hidden = told.filter((folder) => !this.#folders.get(person)?.has(folder))
          if (hidden.length > 0)
            this.wrong ??= `${person} is told that ${name} (${ref}) lies in ${hidden.join(' and ')}`
        }
        cursor = answer.nextCursor ?? undefined
      } while (cursor)
    }
  }

  /** A list that is newer than all that a person's own looks told, and leaves no way to that person, holds. */
  async lookAtLists(): Promise<void> {
    const { tables } = this.#world
    for (const person of PEOPLE) {
      const readable = new Set(this.#world.drive.whoSees()[person]?.read)
      for (const id of await this.#world.seen(person)) {
        const file = await tables.file(id)
        if (!file || file.sharing === null || readable.has(id)) continue
        const grantees = JSON.parse(file.sharing) as { to: string }[]
        const isOpen = grantees.some(({ to }) => to === person || !to.includes('@') || to.startsWith('@'))
        if (isOpen || (await this.#serialOf(person, id)) >= Number(file.sharing_serial)) continue
        this.wrong ??= `${person} finds ${file.name} (${id}), and the list that is known says otherwise`
      }
    }
  }

  /** Of the newest of a person's own looks at a document. */
  async #serialOf(person: string, id: string): Promise<number> {
    const { tables } = this.#world
    const looks = (await tables.feeds(person)).map(({ drive }) => tables.access(person, drive, [id]))
    return Math.max(...(await Promise.all(looks)).map((known) => known.get(id)?.serial ?? 0))
  }
}

function numberIn(text: string): string | undefined {
  return /Words number (\d+)/.exec(text)?.[1]
}

/** One account looks, and nobody else until all do. */
async function syncAlone(world: DriveTestWorld, witness: Witness, person: string): Promise<void> {
  const others = PEOPLE.filter((one) => one !== person)
  for (const other of others) await world.engine.pause('stream', streamOf(other))
  await witness.watch(world.sync(person))
  await witness.lookAtLists()
  for (const other of others) await world.engine.resume('stream', streamOf(other))
}

/** A process is killed when it has been answered so many calls, and at most so much later. */
const KILL_CALLS_MAX = 40
/** Every other one waits for an answer when it is killed, behind so many calls: fewer than any first sync has. */
const HELD_CALLS_MAX = 8
const KILL_MS_MAX = 40
const LOOK_MS = 3
/** What of the syncs lists everything anew, so that processes are killed in listings, too. */
const RELIST_SHARE = 0.3

/**
 * `tidemark drive sync` as a process that is killed while it works, or ends before. It is killed by what it has asked of
 * Drive, and not by the time that it has had: how long a process takes to begin depends on the machine. Of two, the first
 * is not answered any more from some call on: so it is at work when it is killed, however slow the machine is. The other
 * may be anywhere, also in a transaction.
 */
async function killSyncs(
  world: DriveTestWorld,
  random: Random,
  options: { kills: number; killed: KillCounts; weather: FaultsInput; witness: Witness },
): Promise<void> {
  const { kills, killed, weather, witness } = options
  await world.stop()
  const env = {
    ...process.env,
    TIDEMARK_HOME: world.home,
    TIDEMARK_LEDGER_URL: world.ledgerUrl,
    TIDEMARK_SEARCH_EMBEDDING: 'off',
    TIDEMARK_GOOGLE_DRIVE_API_URL: world.settings.apiUrl,
    TIDEMARK_GOOGLE_DRIVE_TOKEN_URL: world.settings.tokenUrl,
    TIDEMARK_GOOGLE_DRIVE_CLIENT_ID: world.drive.clientId,
  }
  for (let n = 0; n < kills; n++) {
    const args = ['drive', 'sync', '--json', ...(random() < RELIST_SHARE ? ['--relist'] : [])]
    const isHeld = n % 2 === 0
    const skip = Math.floor(random() * (isHeld ? HELD_CALLS_MAX : KILL_CALLS_MAX))
    const calls = world.sim.log.served + 1 + skip
    const laterMs = isHeld ? 0 : random() * KILL_MS_MAX
    world.sim.faults.set({ rules: isHeld ? [{ do: 'stall', skip }] : [] })
    const child = spawn(BIN, args, { env, stdio: 'ignore' })
    let isOver = false
    const ended = once(child, 'close').then(() => {
      isOver = true
    })
    const isDue = (): boolean =>
      isHeld ? world.sim.faults.counts()[0]!.struck > 0 : world.sim.log.served >= calls
    while (!isOver && !isDue()) await sleep(systemClock, LOOK_MS)
    await Promise.race([ended, sleep(systemClock, laterMs)])
    const hadEnded = isOver
    child.kill('SIGKILL')
    await ended
    const left = await leftBy(world, child.pid!, witness)
    killed[hadEnded ? 'ended' : left] += 1
  }
  world.sim.faults.set(weather)
  await world.open()
}

/** What a process that was killed left behind, in its jobs and in the index. Nobody has looked at the ledger since. */
async function leftBy(
  world: DriveTestWorld,
  pid: number,
  witness: Witness,
): Promise<Exclude<keyof KillCounts, 'ended'>> {
  const ledger = await openLedger(world.ledgerUrl, { clock: world.clock })
  const search = openSearch({ ledger })
  try {
    await search.prepare()
    await witness.look(search)
    const owners = (await ledger.workers()).filter((worker) => worker.pid === pid).map(({ id }) => id)
    const claimed = await ledger.jobs({ state: 'claimed' })
    if (claimed.some(({ owner }) => owner !== null && owners.includes(owner))) return 'working'
    return (await ledger.jobs({ state: 'pending', limit: 1 })).length > 0 ? 'waiting' : 'idle'
  } finally {
    await search.close()
    await ledger.close()
  }
}

export async function differences(world: DriveTestWorld): Promise<string | undefined> {
  for (const person of world.names) {
    const [seen, truth] = [new Set(await world.seen(person)), new Set(world.truth(person))]
    const nameOf = (id: string): string => `${world.world.items.get(id)?.name ?? 'something gone'} (${id})`
    const more = [...seen.difference(truth)].map(nameOf)
    const less = [...truth.difference(seen)].map(nameOf)
    if (more.length > 0) return `${person} finds ${more.join(', ')}, and must not`
    if (less.length > 0) return `${person} does not find ${less.join(', ')}`
    const { listed, indexed, skipped, failed, onTheirWay } = await world.status(person)
    if (listed !== truth.size || listed !== indexed + skipped + failed + onTheirWay) {
      return `the status of ${person} says ${listed} = ${indexed} + ${skipped} + ${failed} + ${onTheirWay}, and Drive ${truth.size}`
    }
  }
  return undefined
}
