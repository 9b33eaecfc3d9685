/** What the cases of the file bench share: sizes, and worlds with a simulated drive and a home. */
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import type { BenchOptions } from '../bench.ts'
import { LAUNCHER } from '../processes.ts'
import { Session as BenchSession } from '../session.ts'
import type { Order } from './child.ts'
import type { LimitDone, LimitOrder } from './limits.ts'
import type { DriveAt, DriveOrder } from './served-drive.ts'
import type { Step, SyncDone } from './subject.ts'
import type { Huge, Tree } from './tree.ts'

export type Sizes = {
  small: Tree
  /** A service that takes its time to answer, as all that are not on this machine. */
  far: { tree: Tree; latencyMs: number }
  huge: Huge
  /** Of which one top folder is moved. */
  many: Tree
  idleMs: number
  hashGigabytes: number
}

export const FULL: Sizes = {
  small: { tops: 5, subs: 20, files: 100, bytesMax: 4_096 },
  far: { tree: { tops: 3, subs: 10, files: 100, bytesMax: 4_096 }, latencyMs: 20 },
  huge: { files: 5, bytes: 2 ** 30 },
  many: { tops: 10, subs: 100, files: 100, bytesMax: 256 },
  idleMs: 20_000,
  hashGigabytes: 1,
}

export const QUICK: Sizes = {
  small: { tops: 2, subs: 5, files: 20, bytesMax: 4_096 },
  far: { tree: { tops: 2, subs: 5, files: 20, bytesMax: 4_096 }, latencyMs: 20 },
  huge: { files: 2, bytes: 32 * 2 ** 20 },
  many: { tops: 4, subs: 10, files: 20, bytesMax: 256 },
  idleMs: 2_000,
  hashGigabytes: 0.05,
}

const MS_MAX = 600_000
export class Session extends BenchSession<Sizes> {
  #homes = 0

  constructor(options: BenchOptions) {
    super(options, { name: 'files', full: FULL, quick: QUICK })
  }

  /** A simulator of its own while `use` runs, and a home whose folder is removed after it. */
  async world<T>(has: Omit<DriveOrder, 'do'>, use: (world: World) => Promise<T>): Promise<T> {
    const { ready: at, running } = await this.processes.serve<DriveAt>(
      { do: 'drive', ...has },
      { msMax: MS_MAX },
    )
    const home = join(this.folder, `home-${++this.#homes}`)
    try {
      return await use(new World(this, { at, home }))
    } finally {
      await running.stop()
      rmSync(home, { recursive: true, force: true })
    }
  }

  order<Answer>(order: Order): Promise<Answer> {
    const how = order.do === 'sync' ? LAUNCHER : {}
    return this.processes.order<Answer>(order, { msMax: MS_MAX, ...how })
  }
}

export class World {
  readonly at: DriveAt
  readonly home: string
  readonly #session: Session

  constructor(session: Session, { at, home }: { at: DriveAt; home: string }) {
    this.#session = session
    this.at = at
    this.home = home
  }

  get root(): string {
    return join(this.home, 'root')
  }

  async setUp(has: { tree?: Tree; huge?: Huge; isAgreed?: true } = {}): Promise<void> {
    await this.#session.order({ do: 'set-up', home: this.home, at: this.at, ...has })
  }

  async sync(steps: Step[]): Promise<SyncDone> {
    const done = await this.#session.order<SyncDone>({ do: 'sync', home: this.home, at: this.at, steps })
    if (done.left > 0) throw new Error(`${done.left} items were not brought into step`)
    return done
  }

  limit(order: Omit<LimitOrder, 'do' | 'at' | 'root'> & { root?: string }): Promise<LimitDone> {
    return this.#session.order<LimitDone>({ root: this.root, ...order, do: 'limit', at: this.at })
  }
}
