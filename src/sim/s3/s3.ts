/** The simulated S3 put together: its store, the REST protocol over HTTP, the control API. */
import { z } from 'zod'
import { type AwsAccount, awsSettings, signatureOf } from '../aws/account.ts'
import { parse } from '../control.ts'
import { controlObjects, ingestCommands, objectsSummary } from '../objects/control.ts'
import { jsonAnswer, type Operation, type Routes, type SimAnswer, type SimCall } from '../server.ts'
import type { Kernel, RunningService, ServiceAbout } from '../service.ts'
import { ENVELOPES } from './announcements.ts'
import { bucketMustExist, bucketOperation } from './bucket-calls.ts'
import { decoded } from './call.ts'
import { accessDenied, errorAnswer, S3Error, s3Refusal } from './errors.ts'
import { objectOperation } from './object-calls.ts'
import { type NotificationTarget, S3Store } from './store.ts'
import { xmlAnswer } from './xml.ts'

export type S3Options = {
  buckets?: readonly (
    | string
    | { name: string; isVersioned?: boolean; notify?: readonly NotificationTarget[] }
  )[]
}

const text = z.string().min(1)
const inputs = {
  notify: z.strictObject({
    bucket: text,
    queue: text,
    envelope: z.enum(ENVELOPES),
    events: z.array(text).optional(),
    prefix: z.string().optional(),
    suffix: z.string().optional(),
  }),
  announce: z.strictObject({ bucket: text, keys: z.array(text).min(1) }),
}

type Called = { name: string; bucket: string; key: string; run(): SimAnswer }

export class S3 implements RunningService, Routes {
  readonly addresses: readonly string[] = []
  readonly routes: readonly Routes[] = [this]
  /** Everything that is in it, to look at and to change. */
  readonly store: S3Store
  readonly #kernel: Kernel
  #calls: Record<string, number> = {}

  constructor(kernel: Kernel, { buckets = [] }: S3Options) {
    this.#kernel = kernel
    this.store = new S3Store(kernel)
    for (const one of buckets) {
      const { name, isVersioned = false, notify = [] } = typeof one === 'string' ? { name: one } : one
      this.store.createBucket(name, { isVersioned })
      for (const target of notify) this.store.notify(name, target)
    }
  }

  get account(): AwsAccount {
    return this.store.account
  }

  /** `endpoint` of an SDK; with `forcePathStyle`. */
  get baseUrl(): string {
    return this.#kernel.origin()
  }

  /** How often each call was made, whatever came of it. */
  get calls(): Readonly<Record<string, number>> {
    return this.#calls
  }

  /** A signature for S3 tells its calls from those of the other services; without one, the name of a bucket does. */
  match(call: SimCall): Operation | undefined {
    const signature = signatureOf(call)
    const { bucket, key } = this.#address(call)
    const isOurs = signature ? signature.service === 's3' : this.store.buckets.has(bucket)
    if (!isOurs) return undefined
    const called = this.#called(call, { bucket, key })
    return {
      name: `s3.${called.name}`,
      account: signature?.accessKeyId,
      targets: key === '' ? [bucket] : [bucket, `${bucket}/${key}`],
      isNextPage: call.query.has('continuation-token'),
      refuse: s3Refusal,
      run: () => this.#answer(call, called),
    }
  }

  #called(call: SimCall, { bucket, key }: { bucket: string; key: string }): Called {
    const { store } = this
    const unknown = { name: 'Unknown', bucket, key, run: () => notImplemented() }
    if (bucket === '') {
      return call.verb === 'GET'
        ? { name: 'ListBuckets', bucket, key, run: () => this.#listBuckets() }
        : unknown
    }
    if (key === '') {
      const found = bucketOperation(call.verb, call.query)
      if (!found) return unknown
      const own = { store, bucket, call }
      const run = (): SimAnswer => {
        if (!found.isNew) bucketMustExist(own)
        return found.run(own)
      }
      return { name: found.name, bucket, key, run }
    }
    const found = objectOperation(call.verb, call.query, call.headers)
    if (!found) return unknown
    const own = { store, bucket, key, call }
    const run = (): SimAnswer => {
      bucketMustExist(own)
      return found.run(own)
    }
    return { name: found.name, bucket, key, run }
  }

  #answer(call: SimCall, { name, run }: Called): SimAnswer {
    this.#calls[name] = (this.#calls[name] ?? 0) + 1
    try {
      this.#checkCaller(call)
      const answer = run()
      return { ...answer, headers: { 'x-amz-request-id': 'TIDEMARKSIM00001', ...answer.headers } }
    } catch (error) {
      if (error instanceof S3Error) return errorAnswer(error)
      throw error
    }
  }

  #checkCaller(call: SimCall): void {
    const signature = signatureOf(call)
    if (!signature) throw accessDenied()
    const { accessKeyId, isPresigned } = signature
    if (!this.account.accessKeyIds.has(accessKeyId)) {
      const message = 'The AWS Access Key Id you provided does not exist in our records.'
      throw new S3Error('InvalidAccessKeyId', message, 403, { AWSAccessKeyId: accessKeyId })
    }
    if (isPresigned && this.#kernel.clock.now() > presignedUntilMs(call.query)) {
      throw new S3Error('AccessDenied', 'Request has expired', 403)
    }
  }

  /** `/bucket/key`, or the bucket as the first part of the host. */
  #address({ path, headers }: SimCall): { bucket: string; key: string } {
    const hosted = /^(.+)\.(?:localhost|s3[.-][\w.-]+|127\.0\.0\.1\.nip\.io)(?::\d+)?$/.exec(
      headers.host ?? '',
    )?.[1]
    if (hosted !== undefined) return { bucket: hosted, key: decoded(path.slice(1)) }
    const slash = path.indexOf('/', 1)
    if (slash < 0) return { bucket: decoded(path.slice(1)), key: '' }
    return { bucket: decoded(path.slice(1, slash)), key: decoded(path.slice(slash + 1)) }
  }

  #listBuckets(): SimAnswer {
    const Bucket = [...this.store.buckets.keys()]
      .sort()
      .map((Name) => ({ Name, CreationDate: '2026-01-01T00:00:00.000Z' }))
    return xmlAnswer('ListAllMyBucketsResult', { Owner: { ID: this.account.accountId }, Buckets: { Bucket } })
  }

  control(call: SimCall, pieces: readonly string[]): SimAnswer | undefined {
    if (pieces[0] !== 's3') return undefined
    const { store } = this
    const what = `${call.verb} ${pieces.slice(1).join('/')}`
    switch (what) {
      case 'GET ':
        return jsonAnswer({
          ...objectsSummary(store),
          notify: Object.fromEntries(store.targets),
          calls: this.#calls,
        })
      case 'POST notify': {
        const { bucket, ...target } = parse(inputs.notify, call)
        store.notify(bucket, target)
        return jsonAnswer({})
      }
      case 'POST announce': {
        const { bucket, keys } = parse(inputs.announce, call)
        store.announceTogether(bucket, keys)
        return jsonAnswer({})
      }
      default:
        return controlObjects(store, call, what)
    }
  }

  counters(): Record<string, unknown> {
    return { s3: { calls: this.#calls, notices: this.store.notices.counts } }
  }

  resetCounters(): void {
    this.#calls = {}
  }

  about(): ServiceAbout {
    const { baseUrl, account } = this
    const names = [...this.store.buckets.keys()]
    return {
      text: `A simulated S3 is at ${baseUrl}, with ${names.join(', ') || 'no bucket'}.`,
      settings: awsSettings(account, 'S3', baseUrl),
      commands: names.flatMap((bucket) => this.#commands(bucket)),
      refreshTokens: [],
      json: { s3Url: baseUrl, s3Buckets: names },
    }
  }

  #commands(bucket: string): string[] {
    const { baseUrl: origin, account } = this
    const [target] = this.store.targets.get(bucket) ?? []
    const queue = target
      ? ['--sqs', `${origin}/${account.accountId}/${target.queue}`, '--queue-endpoint', origin]
      : []
    const flags = [...queue, '--bucket', `s3://${bucket}/`, '--path-style', '--ambient-credentials']
    return ingestCommands({ service: 's3', origin, bucket }, flags)
  }

  async close(): Promise<void> {
    this.store.notices.close()
  }
}

function presignedUntilMs(query: URLSearchParams): number {
  const [, year, month, day, hour, minute, second] =
    /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/.exec(query.get('X-Amz-Date') ?? '') ?? []
  const fromMs = Date.UTC(
    Number(year),
    Number(month) - 1,
    Number(day),
    Number(hour),
    Number(minute),
    Number(second),
  )
  return fromMs + Number(query.get('X-Amz-Expires')) * 1000
}

function notImplemented(): SimAnswer {
  return errorAnswer(
    new S3Error('NotImplemented', 'A header you provided implies functionality that is not implemented', 501),
  )
}
