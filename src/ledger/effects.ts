/**
 * The effects of several jobs on one connection to a server, without a round trip for each.
 *
 * An effect that sends all its statements before it waits for an answer (`(tx) => tx.run(…)`, several in a
 * `Promise.all`) need not be over before the next one begins: the statements reach the server in the same order as if
 * it were. One that goes on after an answer must be: the next one may count on what it writes, and must not come
 * between its look and its write.
 *
 * Which of the two the effects of a kind are shows when one of them runs alone. A kind that was taken for the first
 * and turns out to be the second costs its transaction, which is run again, with that kind step by step from then on.
 */
import { TidemarkError } from '../base/errors.ts'
import type { EffectOptions, KindEffects, Tx, Value } from './contract.ts'
import { IDLE_CODE } from './guard.ts'

/** Ends one run of a transaction, to begin the next. */
export class RunAgain extends Error {}

/** How the effects of a kind send their statements. */
type Manner = 'at once' | 'step by step'

/** What is known of kinds, whatever the connection. */
export class Manners {
  readonly #of = new Map<string, Manner>()

  of(kind: string): Manner | undefined {
    return this.#of.get(kind)
  }

  /** Once step by step, always so: an effect may have its second step only now and then. */
  learn(kind: string, manner: Manner): void {
    if (this.#of.get(kind) !== 'step by step') this.#of.set(kind, manner)
  }
}

/** A transaction on a server: what is sent is answered in order, and after an error nothing more is done. */
export interface ServerTx extends Tx {
  readonly manners: Manners
  /** The first error of the server or the connection; after it nothing can be committed. */
  failure: unknown
  readonly broken: boolean
  fail(thrown: unknown): void
  /** Not awaited: if it fails, so does what follows. */
  send(sql: string): void
  /** What to throw for a transaction that ended with `thrown`: the cause, not what followed from it. */
  reasonFor(thrown: unknown): unknown
  /** Goes back to the savepoint and ends it: then there is no failure any more. */
  undo(savepoint: string): Promise<void>
  /** What is sent from here on leaves in one piece, at `uncork`: nothing may be waited for in between. */
  cork(): void
  uncork(): void
  /** Throws what COMMIT would refuse, as far as the server can be asked for that. */
  lookAhead(): Promise<void>
  /** What a statement of an effect ended with, where that means something else than one of the ledger's. */
  ofEffect(thrown: unknown): unknown
}

const SAVEPOINT = 'tidemark_part'

/** See Driver. SAVEPOINT and RELEASE go along with other statements: neither costs a round trip. */
export async function behindSavepoint(
  tx: ServerTx,
  fn: () => Promise<void>,
): Promise<{ error: unknown } | undefined> {
  tx.send(`SAVEPOINT ${SAVEPOINT}`)
  let thrown: unknown
  try {
    await fn()
    if (tx.failure === undefined) {
      tx.send(`RELEASE SAVEPOINT ${SAVEPOINT}`)
      return undefined
    }
    // Somebody went on after a failed statement.
    thrown = tx.failure
  } catch (error) {
    thrown = error
  }
  const error = tx.reasonFor(thrown)
  if (tx.broken || error instanceof RunAgain) throw thrown
  try {
    await tx.undo(SAVEPOINT)
  } catch (lost) {
    tx.failure = lost
    throw error
  }
  return { error }
}

/** Whoever stood still in a transaction is to blame for it, also if the server has ended it by then. */
export function isIdle(thrown: unknown): boolean {
  return thrown instanceof TidemarkError && thrown.code === IDLE_CODE
}

/** As if one after the other. Throws what the first that failed has thrown. */
export async function runEffects(
  tx: ServerTx,
  list: readonly KindEffects[],
  { onTurn, looksAhead }: EffectOptions,
): Promise<void> {
  let index = 0
  let looked: Ended | undefined
  while (index < list.length) {
    const begun = beginTogether(tx, list.slice(index), () => {
      if (looksAhead) looked = look(tx)
    })
    for (const ended of begun) {
      onTurn(index)
      const failed = await ended
      if (failed) {
        await Promise.all(begun)
        onTurn(index)
        throw failed.thrown
      }
      index += 1
    }
  }
  onTurn(undefined)
  if (looksAhead) looked ??= look(tx)
  const refused = await looked
  if (refused) throw refused.thrown
}

async function look(tx: ServerTx): Ended {
  try {
    await tx.lookAhead()
    return undefined
  } catch (thrown) {
    return { thrown: tx.ofEffect(thrown) }
  }
}

type Ended = Promise<{ thrown: unknown } | undefined>

/**
 * The first, and if its kind is known to send at once, all that follow and are too. If that was the whole list, what
 * `onAllSent` sends goes along with it.
 */
function beginTogether(tx: ServerTx, list: readonly KindEffects[], onAllSent: () => void): Ended[] {
  const order: Order = { begun: 0 }
  const ends: Ended[] = []
  tx.cork()
  for (const one of list) {
    const isAtOnce = tx.manners.of(one.kind) === 'at once'
    if (ends.length > 0 && !isAtOnce) break
    ends.push(begin(tx, one, order))
    if (!isAtOnce) break
    if (ends.length === list.length) onAllSent()
  }
  tx.uncork()
  return ends
}

type Order = { begun: number }

async function begin(tx: ServerTx, { kind, run }: KindEffects, order: Order): Ended {
  order.begun += 1
  const one = new EffectTx(tx, kind, { place: order.begun, order })
  try {
    const running = run(one)
    one.hasReturned = true
    await running
    // Somebody went on after a failed statement, which has spoiled all that came behind it.
    if (one.failure !== undefined) throw one.failure
    tx.manners.learn(kind, 'at once')
    return undefined
  } catch (thrown) {
    return { thrown }
  }
}

/** The transaction as one effect sees it. */
class EffectTx implements Tx {
  readonly dialect: Tx['dialect']
  readonly isRemote = true
  readonly #tx: ServerTx
  readonly #kind: string
  readonly #place: { place: number; order: Order }
  hasReturned = false
  #failure: unknown

  constructor(tx: ServerTx, kind: string, place: { place: number; order: Order }) {
    this.dialect = tx.dialect
    this.#tx = tx
    this.#kind = kind
    this.#place = place
  }

  /** Of its own statements, or of the connection. */
  get failure(): unknown {
    return this.#failure ?? (this.#tx.broken ? this.#tx.failure : undefined)
  }

  all<T extends object>(sql: string, params?: readonly Value[]): Promise<T[]> {
    return this.#send(() => this.#tx.all<T>(sql, params))
  }

  get<T extends object>(sql: string, params?: readonly Value[]): Promise<T | undefined> {
    return this.#send(() => this.#tx.get<T>(sql, params))
  }

  run(sql: string, params?: readonly Value[]): Promise<number> {
    return this.#send(() => this.#tx.run(sql, params))
  }

  async #send<T>(statement: () => Promise<T>): Promise<T> {
    try {
      if (this.hasReturned) this.#goOn()
      return await statement()
    } catch (thrown) {
      const own = this.#tx.ofEffect(thrown)
      // Also where somebody goes on after it: what follows from it is explained by it.
      if (own !== thrown && this.#tx.failure === (own as TidemarkError).cause) this.#tx.failure = own
      this.#failure ??= own
      throw own
    }
  }

  #goOn(): void {
    this.#tx.manners.learn(this.#kind, 'step by step')
    const { place, order } = this.#place
    if (place === order.begun) return
    const again = new RunAgain('an effect went on when the next one had begun')
    this.#tx.fail(again)
    throw again
  }
}
