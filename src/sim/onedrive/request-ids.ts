/**
 * The id of every answer, as who asks for support has to name it: in the header, and in the body of an error. What the
 * caller sends as `client-request-id` comes back.
 */
import type { Random } from '../../base/random.ts'
import type { Operation, Routes, SimAnswer, SimCall } from '../server.ts'

export class RequestIds {
  readonly #random: Random
  readonly #now: () => number

  constructor({ random, now }: { random: Random; now: () => number }) {
    this.#random = random
    this.#now = now
  }

  /** Every answer of these routes with an id of its own. */
  on(routes: Routes): Routes {
    return {
      match: (call) => {
        const operation = routes.match(call)
        return operation && this.#stamped(operation, call)
      },
    }
  }

  stamp(answer: SimAnswer, { headers }: SimCall): SimAnswer {
    const id = this.#newId()
    const asked = headers['client-request-id']
    const clientId = typeof asked === 'string' && /^[\w-]{1,64}$/.test(asked) ? asked : id
    const ids = { 'request-id': id, 'client-request-id': clientId }
    const body = answer.status < 400 ? answer.body : this.#withIds(answer, ids)
    return { ...answer, body, headers: { ...answer.headers, ...ids } }
  }

  #stamped(operation: Operation, call: SimCall): Operation {
    const { admit, run, refuse } = operation
    return {
      ...operation,
      refuse: (refusal) => this.stamp(refuse(refusal), call),
      run: (plan) => {
        const answer = run(plan)
        return answer instanceof Promise
          ? answer.then((made) => this.stamp(made, call))
          : this.stamp(answer, call)
      },
      ...(admit && {
        admit: () => {
          const admitted = admit()
          return admitted && typeof admitted !== 'function' ? this.stamp(admitted, call) : admitted
        },
      }),
    }
  }

  #withIds({ body }: SimAnswer, ids: Record<string, string>): SimAnswer['body'] {
    if (!Buffer.isBuffer(body)) return body
    const json = JSON.parse(body.toString('utf8')) as { error?: { innerError?: object } }
    if (!json.error) return body
    const date = new Date(this.#now()).toISOString().slice(0, 19)
    json.error.innerError = { ...json.error.innerError, date, ...ids }
    return Buffer.from(JSON.stringify(json))
  }

  #newId(): string {
    const hex = (digits: number): string =>
      Math.floor(this.#random() * 16 ** digits)
        .toString(16)
        .padStart(digits, '0')
    return `${hex(8)}-${hex(4)}-4${hex(3)}-a${hex(3)}-${hex(12)}`
  }
}
