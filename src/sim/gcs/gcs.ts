/** The simulated Cloud Storage put together: its store, the JSON API, the control API. */
import { z } from 'zod'
import { parse } from '../control.ts'
import { CLOUD_TOKEN, cloudCaller } from '../google/cloud-access.ts'
import { faultAnswer, GoogleError, refusalAnswer } from '../google/errors.ts'
import { type GoogleSignIn, joinGoogleSignIn } from '../google/sign-in.ts'
import { controlObjects, ingestCommands, objectsSummary } from '../objects/control.ts'
import { jsonAnswer, type Operation, type Routes, type SimAnswer, type SimCall } from '../server.ts'
import type { Kernel, RunningService, ServiceAbout } from '../service.ts'
import { type GcsCall, gcsOperation } from './calls.ts'
import { EVENT_TYPES, type GcsEventType, GcsStore } from './store.ts'
import { UploadSessions } from './uploads.ts'

export type GcsOptions = {
  buckets?: readonly (
    | string
    | {
        name: string
        isVersioned?: boolean
        notify?: readonly { topic: string; events?: readonly GcsEventType[] }[]
      }
  )[]
}

const SERVICE = 'storage.googleapis.com'
const KEY_FILE = 'simulated-google-key.json'
const PATH = /^\/(upload\/|download\/|)storage\/v1\/b(?:\/(.*))?$/

const notifyInput = z.strictObject({
  bucket: z.string().min(1),
  topic: z.string().min(1),
  events: z.array(z.enum(EVENT_TYPES)).optional(),
  prefix: z.string().optional(),
})

export class Gcs implements RunningService, Routes {
  readonly addresses: readonly string[] = []
  readonly routes: readonly Routes[] = [this]
  /** Everything that is in it, to look at and to change. */
  readonly store: GcsStore
  /** Of a Bearer; tokens of a service account are good, too. */
  readonly accessToken = CLOUD_TOKEN
  readonly #kernel: Kernel
  readonly #signIn: GoogleSignIn
  readonly #uploads = new UploadSessions()
  #calls: Record<string, number> = {}

  constructor(kernel: Kernel, { buckets = [] }: GcsOptions) {
    this.#kernel = kernel
    this.#signIn = joinGoogleSignIn(kernel, () => [])
    this.store = new GcsStore(kernel)
    for (const one of buckets) {
      const { name, isVersioned = false, notify = [] } = typeof one === 'string' ? { name: one } : one
      this.store.createBucket(name, { isVersioned })
      for (const target of notify) this.store.notify(name, target)
    }
  }

  get baseUrl(): string {
    return this.#kernel.origin()
  }

  get calls(): Readonly<Record<string, number>> {
    return this.#calls
  }

  match(call: SimCall): Operation | undefined {
    const match = PATH.exec(call.path)
    if (!match) return undefined
    const pieces = (match[2] ?? '').split('/').filter(Boolean).map(decoded)
    const found = gcsOperation(call, {
      pieces,
      isUpload: match[1] === 'upload/',
      isDownload: match[1] === 'download/',
    })
    const by = cloudCaller(this.#signIn.grants, call, SERVICE)
    const [bucket, , key] = pieces
    return {
      name: `gcs.${found?.name ?? 'unknown'}`,
      ...(typeof by === 'string' ? { account: by } : {}),
      targets: [...(bucket ? [bucket] : []), ...(key ? [`${bucket}/${key}`] : [])],
      isNextPage: call.query.has('pageToken'),
      refuse: refusalAnswer,
      run: () => {
        // An upload goes on with the id of its session.
        if (typeof by !== 'string' && !call.query.has('upload_id')) return faultAnswer(by)
        const { store } = this
        return this.#answer(found, { store, uploads: this.#uploads, call, pieces })
      },
    }
  }

  #answer(found: ReturnType<typeof gcsOperation>, context: GcsCall): SimAnswer {
    if (!found) return faultAnswer({ status: 404, message: 'Not Found', reason: 'notFound' })
    this.#calls[found.name] = (this.#calls[found.name] ?? 0) + 1
    try {
      return found.run(context)
    } catch (error) {
      if (!(error instanceof GoogleError)) throw error
      const { status, message } = error.fault
      // What was to be bytes has its errors as plain words.
      if (found.name === 'objects.media') {
        return { status, headers: { 'content-type': 'text/html; charset=UTF-8' }, body: Buffer.from(message) }
      }
      return faultAnswer(error.fault)
    }
  }

  control(call: SimCall, pieces: readonly string[]): SimAnswer | undefined {
    if (pieces[0] !== 'gcs') return undefined
    const { store } = this
    const what = `${call.verb} ${pieces.slice(1).join('/')}`
    switch (what) {
      case 'GET ':
        return jsonAnswer({
          ...objectsSummary(store),
          notify: Object.fromEntries(store.configs),
          calls: this.#calls,
        })
      case 'GET key':
        return jsonAnswer(this.#signIn.serviceAccount(call.origin))
      case 'POST notify': {
        const { bucket, ...target } = parse(notifyInput, call)
        return jsonAnswer(store.notify(bucket, target))
      }
      default:
        return controlObjects(store, call, what)
    }
  }

  counters(): Record<string, unknown> {
    return { gcs: { calls: this.#calls, notices: this.store.notices.counts } }
  }

  resetCounters(): void {
    this.#calls = {}
  }

  about(): ServiceAbout {
    const { baseUrl, accessToken } = this
    const names = [...this.store.buckets.keys()]
    return {
      text: `A simulated Cloud Storage is at ${baseUrl}/storage/v1, with ${names.join(', ') || 'no bucket'}; token ${accessToken}.`,
      settings: {},
      commands: names.flatMap((bucket) => this.#commands(bucket)),
      refreshTokens: [],
      json: { gcsUrl: baseUrl, gcsBuckets: names, googleCloudToken: accessToken },
    }
  }

  #commands(bucket: string): string[] {
    const origin = this.baseUrl
    const subscription = this.store.subscriptionOf(bucket)
    const queue = subscription === undefined ? [] : ['--pubsub', subscription, '--queue-endpoint', origin]
    const flags = [...queue, '--bucket', `gs://${bucket}/`, '--credentials', KEY_FILE]
    const key = `curl -s -o ${KEY_FILE} ${origin}/control/gcs/key`
    return [key, ...ingestCommands({ service: 'gcs', origin, bucket }, flags)]
  }

  async close(): Promise<void> {
    this.store.notices.close()
  }
}

function decoded(piece: string): string {
  try {
    return decodeURIComponent(piece)
  } catch {
    // No object is called so, and nothing will be found.
    return piece
  }
}
