/** The simulated SQS put together: its queues, the JSON protocol over HTTP, the control API. */
import { z } from 'zod'
import { UsageError } from '../../base/errors.ts'
import { type AwsAccount, awsAccount, awsSettings, signatureOf } from '../aws/account.ts'
import { parse } from '../control.ts'
import type { QueueSettings, SimMessage, SimQueue } from '../queues/queue.ts'
import { jsonAnswer, type Operation, type Routes, type SimAnswer, type SimCall } from '../server.ts'
import type { Kernel, RunningService, ServiceAbout } from '../service.ts'
import { queueName, type SqsCall, sqsCalls } from './calls.ts'
import { errorAnswer, SqsError, sqsRefusal } from './errors.ts'
import { type SqsQueues, sqsQueues } from './queues.ts'

export type SqsOptions = {
  /** Names, or names with what is not as usual. */
  queues?: readonly (
    | string
    | { name: string; visibilityMs?: number; receivesMax?: number; deadLetter?: string }
  )[]
}

const TARGET = 'AmazonSQS.'

const text = z.string().min(1)
const inputs = {
  queue: z.strictObject({ name: text, visibilityMs: z.number().min(0).optional() }),
  send: z.strictObject({ queue: text, body: text, group: text.optional() }),
  message: z.strictObject({ queue: text, id: text }),
  hide: z.strictObject({ queue: text, id: text, ms: z.number().min(0) }),
}

export class Sqs implements RunningService, Routes {
  readonly addresses: readonly string[] = []
  readonly routes: readonly Routes[] = [this]
  readonly account: AwsAccount
  readonly queues: SqsQueues
  readonly #kernel: Kernel
  #calls: Record<string, number> = {}

  constructor(kernel: Kernel, { queues = [] }: SqsOptions) {
    this.#kernel = kernel
    this.account = awsAccount(kernel)
    this.queues = sqsQueues(kernel)
    for (const one of queues) {
      const {
        name,
        visibilityMs,
        receivesMax = 5,
        deadLetter,
      } = typeof one === 'string' ? { name: one } : one
      const settings: Partial<QueueSettings> = {}
      if (visibilityMs !== undefined) settings.visibilityMs = visibilityMs
      if (deadLetter !== undefined)
        settings.deadLetter = { queue: this.queues.create(deadLetter), receivesMax }
      this.queues.create(name, settings)
    }
  }

  /** `endpoint` of an SDK. */
  get baseUrl(): string {
    return this.#kernel.origin()
  }

  /** How often each call was made, whatever came of it. */
  get calls(): Readonly<Record<string, number>> {
    return this.#calls
  }

  queue(name: string): SimQueue {
    return this.queues.queue(name)
  }

  queueUrl(name: string): string {
    return `${this.baseUrl}/${this.account.accountId}/${this.queue(name).name}`
  }

  match(call: SimCall): Operation | undefined {
    const target = call.headers['x-amz-target']
    if (typeof target !== 'string' || !target.startsWith(TARGET)) return undefined
    const name = target.slice(TARGET.length)
    const gone = new AbortController()
    const signature = signatureOf(call)
    return {
      name: `sqs.${name}`,
      account: signature?.accessKeyId,
      // The body names the queue, and comes after this.
      get targets() {
        return targetsOf(call)
      },
      refuse: sqsRefusal,
      // Called when the exchange is over, one way or the other: who has gone waits for nothing.
      admit: () => () => gone.abort(),
      run: () => this.#answer(call, { name, by: signature?.accessKeyId, gone: gone.signal }),
    }
  }

  async #answer(
    call: SimCall,
    { name, by, gone }: { name: string; by: string | undefined; gone: AbortSignal },
  ): Promise<SimAnswer> {
    this.#calls[name] = (this.#calls[name] ?? 0) + 1
    try {
      if (by === undefined)
        throw new SqsError('MissingAuthenticationToken', 'Request is missing Authentication Token', 403)
      if (!this.account.accessKeyIds.has(by)) {
        throw new SqsError(
          'InvalidClientTokenId',
          'The security token included in the request is invalid.',
          403,
        )
      }
      const run = Object.hasOwn(sqsCalls, name) ? sqsCalls[name] : undefined
      if (!run) throw new SqsError('UnknownOperationException', `There is no operation ${name}.`)
      const context: SqsCall = {
        queues: this.queues,
        account: this.account,
        origin: call.origin,
        by,
        nowMs: this.#kernel.clock.now(),
        gone,
      }
      return jsonAnswer(await run(context, inputOf(call)), 200, {
        'content-type': 'application/x-amz-json-1.0',
      })
    } catch (error) {
      if (error instanceof SqsError) return errorAnswer(error)
      throw error
    }
  }

  control(call: SimCall, pieces: readonly string[]): SimAnswer | undefined {
    if (pieces[0] !== 'sqs') return undefined
    const [, what, name] = pieces
    if (call.verb === 'GET' && what === 'queues' && name !== undefined) {
      return jsonAnswer({ ...this.#summary(this.queue(name)), messages: this.queue(name).messages })
    }
    switch (`${call.verb} ${pieces.slice(1).join('/')}`) {
      case 'GET ':
        return jsonAnswer({
          queues: [...this.queues.all.values()].map((one) => this.#summary(one)),
          calls: this.#calls,
        })
      case 'POST queues': {
        const { name: own, ...settings } = parse(inputs.queue, call)
        return jsonAnswer(this.#summary(this.queues.create(own, settings)))
      }
      case 'POST send': {
        const { queue, ...message } = parse(inputs.send, call)
        return jsonAnswer(this.queue(queue).send(message))
      }
      case 'POST expire-receipt': {
        const { queue, id } = parse(inputs.message, call)
        return this.#changed(queue, id, (one) => one.expireReceipt(id))
      }
      case 'POST hide': {
        const { queue, id, ms } = parse(inputs.hide, call)
        return this.#changed(queue, id, (one) => one.hide(id, ms))
      }
      default:
        return undefined
    }
  }

  #changed(queue: string, id: string, run: (queue: SimQueue) => boolean): SimAnswer {
    const one = this.queue(queue)
    if (!run(one))
      throw new UsageError(`The queue ${queue} has no such message ${id} now.`, { code: 'sim-not-found' })
    return jsonAnswer(one.message(id) as SimMessage)
  }

  #summary(queue: SimQueue): object {
    const outcomes: Record<string, number> = {}
    for (const { outcome } of queue.messages) outcomes[outcome] = (outcomes[outcome] ?? 0) + 1
    return { name: queue.name, sent: queue.messages.length, ...queue.depth(), outcomes }
  }

  counters(): Record<string, unknown> {
    return { sqs: { calls: this.#calls } }
  }

  resetCounters(): void {
    this.#calls = {}
  }

  about(): ServiceAbout {
    const { baseUrl, account } = this
    const names = [...this.queues.all.keys()]
    const urls = names.map((name) => this.queueUrl(name))
    return {
      text: `A simulated SQS is at ${baseUrl}, with ${urls.join(', ') || 'no queue'}.`,
      settings: awsSettings(account, 'SQS', baseUrl),
      refreshTokens: [],
      json: {
        sqsUrl: baseUrl,
        sqsQueueUrls: urls,
        awsAccessKeyId: account.accessKeyId,
        awsSecretAccessKey: account.secretAccessKey,
        awsRegion: account.region,
      },
    }
  }
}

function targetsOf(call: SimCall): string[] {
  const url = /"QueueUrl"\s*:\s*"([^"]+)"/.exec(call.body.toString('utf8'))?.[1]
  return url === undefined ? [] : [queueName(url)]
}

function inputOf({ body }: SimCall): unknown {
  try {
    return body.length === 0 ? {} : JSON.parse(body.toString('utf8'))
  } catch (cause) {
    throw Object.assign(new SqsError('SerializationException', 'The body is not JSON.'), { cause })
  }
}
