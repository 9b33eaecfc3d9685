/** Opens the queue and the stores of a pipeline. What is not asked for is not loaded. */
import { resolve } from 'node:path'
import { z } from 'zod'
import type { Clock } from '../../base/clock.ts'
import { UsageError } from '../../base/errors.ts'
import type { Fetch } from '../../cloud/oauth.ts'
import type { ObjectStore } from '../../cloud/object-store.ts'
import type { Queue } from '../../cloud/queue.ts'
import type { TokenSource } from '../../cloud/token-source.ts'
import type { Pipeline, PipelineSecret } from './pipeline.ts'
import type { Connector, StoreScheme } from './pipelines.ts'
import { isLeftOut } from './reach.ts'
import type { IngestSettings } from './settings.ts'
import type { InboxTables } from './store/inbox.ts'

export type ConnectPlace = {
  inbox: InboxTables
  clock: Clock
  fetch: Fetch
  resolve: (host: string) => Promise<readonly string[]>
  settings: Pick<IngestSettings, 'visibilityMs'>
  onError: (error: unknown) => void
}

export function connectorOf(place: ConnectPlace): Connector {
  return {
    queue: (pipeline, secret) => openQueue(place, pipeline, secret),
    store: (pipeline, secret, scheme) => openStore(place, { pipeline, secret, scheme }),
  }
}

async function openQueue(
  place: ConnectPlace,
  pipeline: Pipeline,
  secret: PipelineSecret,
): Promise<Queue | null> {
  const { name, config } = pipeline
  const { clock, settings } = place
  const { visibilityMs } = settings
  const { queue } = config
  switch (queue.kind) {
    case 'none':
      return null
    case 'inbox':
      return openInbox(place, name)
    case 'folder':
      return openFolder(place, pipeline, queue.path)
    case 'sqs': {
      const { SqsQueue } = await import('../../cloud/sqs/client.ts')
      const { region, endpoint } = queue
      checkAws(name, config, secret)
      return new SqsQueue({
        queueUrl: queue.url,
        region,
        endpoint,
        credentials: secret.aws,
        clock,
        visibilityMs,
      })
    }
    case 'pubsub': {
      const { PubsubQueue } = await import('../../cloud/pubsub/client.ts')
      const { subscription, endpoint } = queue
      const token = await googleTokens(place, name, secret)
      const at = endpoint === undefined ? {} : { apiUrl: endpoint }
      return new PubsubQueue({ fetch: place.fetch, clock, token, subscription, visibilityMs, ...at })
    }
    case 'nats': {
      const { NatsQueue } = await import('../../cloud/nats/client.ts')
      const { stream, consumer } = queue
      const servers = queue.servers.split(',').map((one) => one.trim())
      return NatsQueue.open({ clock, servers, stream, consumer, ...secret.nats })
    }
  }
}

async function openInbox({ inbox, clock, settings }: ConnectPlace, pipeline: string): Promise<Queue> {
  const { LedgerQueue } = await import('./queues/ledger-queue.ts')
  return new LedgerQueue({ inbox, pipeline, clock, visibilityMs: settings.visibilityMs })
}

/** Files are announced in the inbox by who watches the folder, as long as the queue is open. */
async function openFolder(
  place: ConnectPlace,
  { name: pipeline, config }: Pipeline,
  path: string,
): Promise<Queue> {
  const { DropFolder } = await import('./queues/drop-folder.ts')
  const { inbox, clock, onError } = place
  const leavesOut = (key: string): boolean => isLeftOut(config, `file://${path}/${key}`)
  const folder = new DropFolder({ folder: path, pipeline, inbox, clock, onError, leavesOut })
  const queue = await openInbox(place, pipeline)
  folder.start()
  return {
    limits: queue.limits,
    receive: (options) => queue.receive(options),
    extend: (messages, ms) => queue.extend(messages, ms),
    acknowledge: (messages) => queue.acknowledge(messages),
    depth: () => queue.depth(),
    async close() {
      await folder.close()
      await queue.close()
    },
  }
}

type StoreInput = { pipeline: Pipeline; secret: PipelineSecret; scheme: StoreScheme }

async function openStore(
  place: ConnectPlace,
  { pipeline, secret, scheme }: StoreInput,
): Promise<ObjectStore> {
  const { clock, fetch } = place
  const { config, name } = pipeline
  switch (scheme) {
    case 's3': {
      const { S3Store } = await import('../../cloud/s3/client.ts')
      const { region, endpoint, pathStyle } = config.store
      checkAws(name, config, secret)
      return new S3Store({ region, endpoint, credentials: secret.aws, clock, forcePathStyle: pathStyle })
    }
    case 'file': {
      const root = fileRoot(config)
      if (root === undefined) throw notConfigured(name, 'files of this machine', '--folder PATH')
      const { FileStore } = await import('../../cloud/local-files/client.ts')
      const { isUnfinishedName } = await import('./queues/drop-folder.ts')
      return new FileStore({ root, leavesOut: isUnfinishedName })
    }
    case 'https': {
      const { WebStore } = await import('../../cloud/web/client.ts')
      return new WebStore({ clock, resolve: place.resolve, hosts: config.hosts })
    }
    case 'gs': {
      const { GcsStore } = await import('../../cloud/gcs/client.ts')
      const { endpoint } = config.store
      const token = await googleTokens(place, name, secret)
      const at = endpoint === undefined ? {} : { apiUrl: endpoint }
      return new GcsStore({ fetch, clock, token, ...at })
    }
  }
}

/** Objects may be tagged where that is asked for: whoever gave the key says whether they may. */
const GOOGLE_SCOPE = 'https://www.googleapis.com/auth/cloud-platform'
const serviceAccount = z.object({
  client_email: z.string().min(1),
  private_key: z.string().min(1),
  token_uri: z.string().min(1).optional(),
})

async function googleTokens(
  { fetch, clock }: ConnectPlace,
  name: string,
  secret: PipelineSecret,
): Promise<TokenSource> {
  const { serviceTokens } = await import('../../cloud/google/service-account.ts')
  const key = serviceAccount.safeParse(secret.serviceAccount)
  if (!key.success) throw notConfigured(name, 'anything of Google', '--credentials KEY.json')
  const { client_email: clientEmail, private_key: privateKey, token_uri: tokenUrl } = key.data
  const at = tokenUrl === undefined ? {} : { tokenUrl }
  return serviceTokens({ access: { clientEmail, privateKey }, scope: GOOGLE_SCOPE, fetch, clock, ...at })
}

/** Without keys the client would look for those of this machine, which may far more than a pipeline should. */
function checkAws(name: string, config: Pipeline['config'], secret: PipelineSecret): void {
  if (secret.aws || config.ambientCredentials) return
  throw notConfigured(name, 'anything of AWS', '--credentials KEYS.json (or --ambient-credentials)')
}

const FILE = 'file://'

/** Nothing outside of it is read, whatever a message says. */
function fileRoot({ queue, location }: Pipeline['config']): string | undefined {
  if (queue.kind === 'folder') return resolve(queue.path)
  return location?.startsWith(FILE) ? resolve(location.slice(FILE.length)) : undefined
}

function notConfigured(name: string, what: string, flag: string): UsageError {
  return new UsageError(`The pipeline ${name} may not read ${what}.`, {
    code: 'store-not-configured',
    hint: `Say so with: tidemark ingest add ${name} --update ${flag}`,
  })
}
