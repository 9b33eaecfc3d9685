/** The pipelines of this process: what is configured, and the queues and stores that were opened for them. */
import { TidemarkError, UsageError } from '../../base/errors.ts'
import type { Vault } from '../../base/vault.ts'
import { openSecret } from '../../cloud/account-store.ts'
import type { ObjectStore } from '../../cloud/object-store.ts'
import type { Queue } from '../../cloud/queue.ts'
import type { Accounts } from '../../ledger/accounts.ts'
import { type Pipeline, type PipelineSecret, readPipeline, SERVICE, secretSchema } from './pipeline.ts'

export type StoreScheme = ObjectStore['scheme']

/** How queues and stores are opened. */
export type Connector = {
  /** Null where a pipeline has none. Whoever opens one closes it. */
  queue(pipeline: Pipeline, secret: PipelineSecret): Promise<Queue | null>
  store(pipeline: Pipeline, secret: PipelineSecret, scheme: StoreScheme): Promise<ObjectStore>
}

type Opened = { pipeline: Pipeline; stamp: string; stores: Map<StoreScheme, Promise<ObjectStore>> }

/** So many sockets of former configurations a process may keep. */
const RETIRED_MAX = 16

/**
 * Stores are opened with the first object and kept; a pipeline that is configured anew gets new ones, and
 * whoever reads with an old one reads on. One whose configuration cannot be read is left out, with its reason, and disturbs no other.
 */
export class Pipelines {
  readonly #accounts: Accounts
  readonly #vault: Vault
  readonly #connector: Connector
  #opened: ReadonlyMap<string, Opened> = new Map()
  #broken: ReadonlyMap<string, TidemarkError> = new Map()
  #reloading: Promise<void> = Promise.resolve()
  /** Of pipelines that were configured anew or removed, oldest first: somebody may be reading with them. */
  #retired: Promise<ObjectStore>[] = []

  constructor({ accounts, vault, connector }: { accounts: Accounts; vault: Vault; connector: Connector }) {
    this.#accounts = accounts
    this.#vault = vault
    this.#connector = connector
  }

  names(): string[] {
    return [...this.#opened.keys()]
  }

  /** Those that cannot be worked for, and why. */
  broken(): ReadonlyMap<string, TidemarkError> {
    return this.#broken
  }

  /** Another text as soon as it is configured, or signed in, anew. */
  stamp(name: string): string | undefined {
    return this.#opened.get(name)?.stamp
  }

  /** One that was configured meanwhile is found. */
  async get(name: string): Promise<Pipeline> {
    if (!this.#opened.has(name)) await this.reload()
    const found = this.#opened.get(name)
    if (found) return found.pipeline
    const broken = this.#broken.get(name)
    if (broken) throw broken
    throw unknownPipeline(name, this.names())
  }

  async queue(name: string): Promise<Queue | null> {
    const pipeline = await this.get(name)
    return this.#connector.queue(pipeline, await this.#secret(pipeline))
  }

  async store(name: string, uri: string): Promise<ObjectStore> {
    const pipeline = await this.get(name)
    const scheme = schemeOf(uri)
    const { stores } = this.#opened.get(name)!
    const known = stores.get(scheme)
    if (known) return known
    const opening = this.#secret(pipeline).then((secret) => this.#connector.store(pipeline, secret, scheme))
    stores.set(scheme, opening)
    opening.catch(() => stores.delete(scheme))
    return opening
  }

  /** One at a time. All of it is seen at once: no pipeline is missing while it is looked at. */
  reload(): Promise<void> {
    const reloading = this.#reloading.then(() => this.#load())
    // Whoever asked is told; the next one tries anew.
    this.#reloading = reloading.catch(() => undefined)
    return reloading
  }

  async close(): Promise<void> {
    await this.#reloading
    for (const { stores } of this.#opened.values()) this.#retired.push(...stores.values())
    this.#opened = new Map()
    await this.#closeRetired(0)
  }

  async #load(): Promise<void> {
    const before = this.#opened
    const opened = new Map<string, Opened>()
    const broken = new Map<string, TidemarkError>()
    for (const account of await this.#accounts.list(SERVICE)) {
      const sealed = await this.#accounts.sealed(account.id)
      const stamp = `${account.id} ${JSON.stringify(account.settings)} ${Buffer.from(sealed).toString('base64')}`
      const known = before.get(account.name)
      try {
        const isSame = known?.stamp === stamp
        opened.set(
          account.name,
          isSame ? known : { pipeline: readPipeline(account), stamp, stores: new Map() },
        )
      } catch (thrown) {
        if (!(thrown instanceof TidemarkError)) throw thrown
        broken.set(account.name, thrown)
      }
    }
    this.#opened = opened
    this.#broken = broken
    for (const [name, one] of before) if (opened.get(name) !== one) this.#retired.push(...one.stores.values())
    await this.#closeRetired(RETIRED_MAX)
  }

  async #closeRetired(keep: number): Promise<void> {
    const closing = this.#retired.splice(0, Math.max(0, this.#retired.length - keep))
    for (const opening of closing) {
      // One that could not be opened has told whoever asked for it.
      const store = await opening.catch(() => undefined)
      await store?.close()
    }
  }

  async #secret({ account }: Pipeline): Promise<PipelineSecret> {
    const text = await openSecret({ accounts: this.#accounts, vault: this.#vault, account })
    return secretSchema.parse(JSON.parse(text))
  }
}

const SCHEMES: readonly StoreScheme[] = ['s3', 'gs', 'file', 'https']

export function schemeOf(uri: string): StoreScheme {
  const scheme = uri.slice(0, uri.indexOf(':')).replace(/^http$/, 'https')
  const known = SCHEMES.find((one) => one === scheme)
  if (known) return known
  throw new TidemarkError(`Nothing here reads ${uri}.`, {
    kind: 'permanent',
    code: 'scheme-unknown',
    hint: `Addresses begin with one of: ${SCHEMES.join(', ')}.`,
  })
}

export function unknownPipeline(name: string, names: readonly string[]): UsageError {
  return new UsageError(`There is no pipeline ${name}.`, {
    code: 'pipeline-unknown',
    hint: names.length > 0 ? `There are: ${names.join(', ')}.` : 'Make one with: tidemark ingest add NAME',
  })
}
