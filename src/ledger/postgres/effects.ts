/**
 * The effects of several jobs on one connection, without a round trip for each.
 *
 * An effect that sends all its statements before it waits for an answer (`(tx) => tx.run(…)`, several in a
 * `Promise.all`) need not be over before the next one begins: the statements reach the server in the same order as if
 * it were. One that goes on after an answer must be: the next one may count on what it writes, and must not come
 * between its look and its write.
 *
 * Which of the two the effects of a kind are shows when one of them runs alone. A kind that was taken for the first
 * and turns out to be the second costs its transaction, which is run again, with that kind step by step from then on.
 */
import type { TidemarkError } from '../../base/errors.ts'
import type { EffectOptions, KindEffects, Tx, Value } from '../contract.ts'
import { classifyOfEffect } from './errors.ts'
import { type PostgresTx, RunAgain } from './tx.ts'

/**
 * Each constraint that waits for COMMIT, looked at now; for what is written from here on it waits again. So does one that
 * need not wait (INITIALLY IMMEDIATE): it is looked at with the others, a moment later than usual. A savepoint that is
 * undone would keep those apart, but then COMMIT would look at everything a second time.
 */
const LOOK = `SET CONSTRAINTS ALL IMMEDIATE; SET CONSTRAINTS ALL DEFERRED`

/** As if one after the other. Throws what the first that failed has thrown. */
export async function runEffects(
  tx: PostgresTx,
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

async function look(tx: PostgresTx): Ended {
  try {
    await tx.query({ text: LOOK, values: [] })
    return undefined
  } catch (thrown) {
    return { thrown: classifyOfEffect(thrown) }
  }
}

type Ended = Promise<{ thrown: unknown } | undefined>

/**
 * The first, and if its kind is known to send at once, all that follow and are too. If that was the whole list, what
 * `onAllSent` sends goes along with it.
 */
function beginTogether(tx: PostgresTx, list: readonly KindEffects[], onAllSent: () => void): Ended[] {
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

async function begin(tx: PostgresTx, { kind, run }: KindEffects, order: Order): Ended {
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
  readonly dialect = 'postgres'
  readonly #tx: PostgresTx
  readonly #kind: string
  readonly #place: { place: number; order: Order }
  hasReturned = false
  #failure: unknown

  constructor(tx: PostgresTx, kind: string, place: { place: number; order: Order }) {
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
      const own = classifyOfEffect(thrown)
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
