/**
 * Subscriptions: whoever subscribes is asked whether it is really there (it must send the validation token
 * back), and is then told that something changed, never what. Only addresses on this machine are called.
 *
 * One notification per subscription is under way at a time; changes that come meanwhile make one more.
 */
import { type Clock, sleep } from '../../base/clock.ts'
import type { Random } from '../../base/random.ts'
import { jsonAnswer, type SimAnswer, type SimCall } from '../server.ts'
import { invalid, notFound } from './errors.ts'
import { jsonBody, noContent, timeOf } from './route.ts'
import type { SimDrive } from './sim-drive.ts'

export type Subscription = {
  id: string
  sim: SimDrive
  resource: string
  notificationUrl: string
  clientState: string | undefined
  expiresMs: number
}

export type NotificationCounts = { sent: number; delivered: number; failed: number }

const LIFE_MS_MAX = 43_200 * 60_000
const ATTEMPTS_MAX = 4
const RETRY_MS = 250
const CALL_MS_MAX = 10_000
const SUBSCRIPTIONS_MAX = 1_000

type Live = Subscription & { isBusy: boolean; isDue: boolean }

export class Subscriptions {
  readonly counts: NotificationCounts = { sent: 0, delivered: 0, failed: 0 }
  readonly #clock: Clock
  readonly #random: Random
  readonly #live = new Map<string, Live>()
  readonly #pending = new Set<Promise<void>>()
  readonly #stop = new AbortController()

  constructor(options: { clock: Clock; random: Random }) {
    this.#clock = options.clock
    this.#random = options.random
  }

  route(
    call: SimCall,
    path: string,
    drives: readonly SimDrive[],
  ): { name: string; run: () => SimAnswer | Promise<SimAnswer> } | undefined {
    const match = /^\/subscriptions(?:\/([^/]+))?$/.exec(path)
    if (!match) return undefined
    const [, id] = match
    switch (`${call.verb}${id === undefined ? '' : ' one'}`) {
      case 'GET':
        return { name: 'graph.subscriptions.list', run: () => this.#list(drives) }
      case 'POST':
        return { name: 'graph.subscriptions.create', run: () => this.#create(call, drives) }
      case 'GET one':
        return { name: 'graph.subscriptions.get', run: () => jsonAnswer(shown(this.#known(id!, drives))) }
      case 'PATCH one':
        return { name: 'graph.subscriptions.renew', run: () => this.#renew(call, this.#known(id!, drives)) }
      case 'DELETE one':
        return {
          name: 'graph.subscriptions.delete',
          run: () => {
            this.#live.delete(this.#known(id!, drives).id)
            return noContent
          },
        }
      default:
        return undefined
    }
  }

  /** The drive has changed. */
  changed(sim: SimDrive): void {
    if (this.#live.size === 0) return
    for (const live of this.#live.values()) {
      if (live.sim !== sim || live.expiresMs <= this.#clock.now()) continue
      live.isDue = true
      if (!live.isBusy) this.#begin(live)
    }
  }

  /** Nothing is under way any more. */
  async settled(): Promise<void> {
    while (this.#pending.size > 0) await Promise.all(this.#pending)
  }

  async close(): Promise<void> {
    this.#stop.abort(new Error('the simulated cloud is closing'))
    this.#live.clear()
    await this.settled()
  }

  #list(drives: readonly SimDrive[]): SimAnswer {
    const own = [...this.#live.values()].filter(({ sim }) => drives.includes(sim))
    return jsonAnswer({ value: own.map(shown) })
  }

  async #create(call: SimCall, drives: readonly SimDrive[]): Promise<SimAnswer> {
    const body = jsonBody({ call })
    const { changeType, notificationUrl, resource, clientState } = body
    if (changeType !== 'updated') throw invalid('Only the change type "updated" is supported for drives.')
    if (typeof notificationUrl !== 'string' || !isLocal(notificationUrl)) {
      throw invalid('The notification address must be on this machine.')
    }
    const sim = typeof resource === 'string' ? driveOf(resource, drives) : undefined
    if (!sim) throw invalid('The resource is not the root of a drive.')
    if (this.#live.size >= SUBSCRIPTIONS_MAX) throw invalid('There are too many subscriptions.')
    const expiresMs = this.#expiry(body.expirationDateTime)
    await this.#validate(notificationUrl)
    const id = `sub-${Math.floor(this.#random() * 2 ** 48).toString(36)}`
    const live: Live = {
      id,
      sim,
      resource: resource as string,
      notificationUrl,
      expiresMs,
      clientState: typeof clientState === 'string' ? clientState : undefined,
      isBusy: false,
      isDue: false,
    }
    this.#live.set(id, live)
    return jsonAnswer(shown(live), 201)
  }

  async #validate(notificationUrl: string): Promise<void> {
    const token = `validation ${Math.floor(this.#random() * 2 ** 48).toString(36)} +/=`
    const url = new URL(notificationUrl)
    url.searchParams.set('validationToken', token)
    const answer = await this.#post(url.href, '', 'text/plain')
    if (answer?.status !== 200 || answer.text !== token) {
      throw invalid('Subscription validation request failed. The validation token did not come back.')
    }
  }

  #renew(call: SimCall, live: Live): SimAnswer {
    live.expiresMs = this.#expiry(jsonBody({ call }).expirationDateTime)
    return jsonAnswer(shown(live))
  }

  #expiry(value: unknown): number {
    const expiresMs = timeOf(value)
    const nowMs = this.#clock.now()
    if (expiresMs <= nowMs) throw invalid('The expiration lies in the past.')
    if (expiresMs > nowMs + LIFE_MS_MAX) throw invalid('The expiration is more than 30 days away.')
    return expiresMs
  }

  #known(id: string, drives: readonly SimDrive[]): Live {
    const live = this.#live.get(id)
    if (live && live.expiresMs > this.#clock.now() && drives.includes(live.sim)) return live
    throw notFound('The subscription was not found.')
  }

  #begin(live: Live): void {
    live.isBusy = true
    const work = this.#notify(live).finally(() => {
      live.isBusy = false
      this.#pending.delete(work)
    })
    this.#pending.add(work)
  }

  async #notify(live: Live): Promise<void> {
    while (live.isDue && this.#live.has(live.id)) {
      live.isDue = false
      this.counts.sent += 1
      const isDelivered = await this.#deliver(live)
      this.counts[isDelivered ? 'delivered' : 'failed'] += 1
    }
  }

  async #deliver({ id, resource, clientState, notificationUrl, expiresMs }: Live): Promise<boolean> {
    const subscriptionExpirationDateTime = new Date(expiresMs).toISOString()
    const one = {
      subscriptionId: id,
      subscriptionExpirationDateTime,
      clientState,
      changeType: 'updated',
      resource,
    }
    const body = JSON.stringify({ value: [one] })
    for (let attempt = 1; attempt <= ATTEMPTS_MAX && !this.#stop.signal.aborted; attempt++) {
      const answer = await this.#post(notificationUrl, body, 'application/json')
      if (answer && answer.status >= 200 && answer.status < 300) return true
      // Closing ends the wait, and then the loop.
      if (attempt < ATTEMPTS_MAX)
        await sleep(this.#clock, RETRY_MS * attempt, this.#stop.signal).catch(() => {})
    }
    return false
  }

  async #post(
    url: string,
    body: string,
    type: string,
  ): Promise<{ status: number; text: string } | undefined> {
    try {
      const answer = await fetch(url, {
        method: 'POST',
        headers: { 'content-type': type },
        body,
        redirect: 'manual',
        signal: AbortSignal.any([this.#stop.signal, AbortSignal.timeout(CALL_MS_MAX)]),
      })
      return { status: answer.status, text: await answer.text() }
    } catch {
      // Nobody there, or too slow: the same as a refusal.
      return undefined
    }
  }
}

function driveOf(resource: string, drives: readonly SimDrive[]): SimDrive | undefined {
  if (/^\/?me\/drive\/root$/.test(resource)) return drives[0]
  const id = /^\/?drives\/([^/]+)\/root$/.exec(resource)?.[1]
  return drives.find((sim) => sim.id === id)
}

function isLocal(url: string): boolean {
  if (!URL.canParse(url)) return false
  const { protocol, hostname } = new URL(url)
  return /^https?:$/.test(protocol) && ['127.0.0.1', 'localhost', '[::1]'].includes(hostname)
}

function shown({
  id,
  resource,
  notificationUrl,
  clientState,
  expiresMs,
}: Subscription): Record<string, unknown> {
  return {
    id,
    resource,
    notificationUrl,
    clientState,
    changeType: 'updated',
    expirationDateTime: new Date(expiresMs).toISOString(),
  }
}
