/** Making, changing and forgetting pipelines: the same for the command line and the API. */

import { normalize } from 'node:path'
import type { Runtime } from '../../app/runtime.ts'
import { UsageError } from '../../base/errors.ts'
import { openSecret } from '../../cloud/account-store.ts'
import { type Account, accountKey, OWNER_ID } from '../../ledger/accounts.ts'
import {
  checkPipelineName,
  type PipelineConfig,
  type PipelineInput,
  type PipelineSecret,
  pipelineSchema,
  SERVICE,
  secretSchema,
  streamOf,
} from './pipeline.ts'
import { unknownPipeline } from './pipelines.ts'

type Place = Pick<Runtime, 'accounts' | 'vault' | 'engine'>

/** What parts of a configuration are called by who configures it. */
const FLAGS: Readonly<Record<string, string>> = {
  location: '--bucket',
  allow: '--allow',
  hosts: '--host',
  'after.to': '--to',
  'store.endpoint': '--endpoint',
  'queue.endpoint': '--queue-endpoint',
  'queue.url': '--sqs',
  'queue.servers': '--nats',
}

/** Refuses what does not fit, and says which part of it. */
export function checkConfig(input: unknown): PipelineConfig {
  const parsed = pipelineSchema.safeParse(input)
  if (!parsed.success) {
    const issue = parsed.error.issues[0]
    const path = issue?.path.filter((part) => typeof part === 'string').join('.') ?? ''
    throw new UsageError(
      `This is no configuration of a pipeline: ${FLAGS[path] ?? (path || 'all of it')}: ${issue?.message}.`,
      { code: 'pipeline-config', cause: parsed.error },
    )
  }
  const config = parsed.data
  checkPlaces(config)
  if (config.queue.kind === 'none' && config.location === null) {
    throw new UsageError('The pipeline has neither a queue nor anything to list.', {
      code: 'pipeline-config',
      hint: 'Say where messages come from (--sqs, --pubsub, --nats, --folder, --inbox), or what is listed (--bucket).',
    })
  }
  checkMove(config)
  return config
}

/** Not where settings are read: what was stored before this was asked for must not stop its pipeline. */
function checkPlaces({ location, allow, after }: PipelineConfig): void {
  const to = after.do === 'move' ? after.to : null
  for (const [flag, places] of [
    ['--bucket', [location]],
    ['--allow', allow],
    ['--to', [to]],
  ] as const) {
    if (places.every((place) => place === null || /^(?:s3|gs):\/\/[^/]|^file:\/\/\//.test(place))) continue
    throw new UsageError(
      `This is no configuration of a pipeline: ${flag}: it must begin with s3://, gs:// or file:///.`,
      { code: 'pipeline-config' },
    )
  }
}

/** Objects that were moved are not read again, so nothing else may lie there; and a folder's are moved within it. */
function checkMove({ after, queue, location, allow }: PipelineConfig): void {
  if (after.do !== 'move') return
  const { to } = after
  const refuse = (message: string, hint: string): never => {
    throw new UsageError(message, { code: 'pipeline-config', hint })
  }
  const folder = queue.kind === 'folder' ? `file://${queue.path}/` : undefined
  if (folder !== undefined && (!to.startsWith(folder) || to === folder))
    refuse(`Files of ${folder} cannot be moved to ${to}.`, 'Name a folder in it, such as --to done.')
  const path = to.startsWith('file://') ? to.slice('file://'.length) : undefined
  if (path !== undefined && path !== normalize(path))
    refuse(`${to} is no plain address of a folder.`, `Write it like file://${normalize(path)}.`)
  const read = [location, ...allow].find((one) => one !== null && `${one}/`.startsWith(to))
  if (read != null)
    refuse(`Objects cannot be moved to ${to}, where they are read from.`, 'Name another place with --to.')
}

/** What was moved stays out of sight, also when nothing is moved any more, or to somewhere else. */
function withMovedBefore(config: PipelineInput, before: PipelineInput): PipelineInput {
  const { after, leftOut = [] } = before
  if (after?.do !== 'move') return config
  return { ...config, leftOut: [...new Set([...(config.leftOut ?? leftOut), after.to])] }
}

export async function addPipeline(
  { accounts, vault }: Place,
  input: { name: string; config: PipelineInput; secret: PipelineSecret; userId?: number | undefined },
): Promise<PipelineConfig> {
  const { name, secret, userId } = input
  checkPipelineName(name)
  const config = checkConfig(input.config)
  if (config.ambientCredentials && (userId ?? OWNER_ID) !== OWNER_ID) throw ambientOfUser()
  if (await accounts.find(SERVICE, name)) {
    throw new UsageError(`The pipeline ${name} is there already.`, {
      code: 'pipeline-exists',
      hint: `Change it with: tidemark ingest add ${name} --update`,
    })
  }
  const sealed = vault.seal(accountKey({ service: SERVICE, name }), JSON.stringify(secret))
  await accounts.add({ service: SERVICE, name, settings: { [SERVICE]: config }, sealed, userId })
  return config
}

/** What is not given stays. A pipeline that waited for new keys goes on. */
export async function updatePipeline(
  place: Place,
  { name, config, secret }: { name: string; config: PipelineInput; secret?: PipelineSecret | undefined },
): Promise<PipelineConfig> {
  const { accounts, vault, engine } = place
  const account = await findPipeline(place, name)
  const checked = checkConfig(withMovedBefore(config, (account.settings[SERVICE] ?? {}) as PipelineInput))
  if (checked.ambientCredentials && account.userId !== OWNER_ID) throw ambientOfUser()
  const kept = secret ?? secretSchema.parse(JSON.parse(await openSecret({ accounts, vault, account })))
  const sealed = vault.seal(accountKey(account), JSON.stringify(kept))
  await accounts.reconnect(account.id, { sealed, settings: { ...account.settings, [SERVICE]: checked } })
  if (secret) await engine.ledger.resume('stream', streamOf(name))
  return checked
}

/** The keys of this machine are its owner's. */
function ambientOfUser(): UsageError {
  return new UsageError('A pipeline of a user cannot use the keys of this machine.', {
    code: 'ambient-credentials',
    hint: 'Give it keys of its own with --credentials.',
  })
}

/** What was configured, as it was written. */
export async function configOf(place: Place, name: string): Promise<PipelineInput> {
  return ((await findPipeline(place, name)).settings[SERVICE] ?? {}) as PipelineInput
}

async function findPipeline({ accounts }: Pick<Place, 'accounts'>, name: string): Promise<Account> {
  const account = await accounts.find(SERVICE, name)
  if (account) return account
  throw unknownPipeline(
    name,
    (await accounts.list(SERVICE)).map((one) => one.name),
  )
}

/** Its records leave the index when a process that runs jobs next looks. */
export async function removePipeline(place: Place, name: string): Promise<void> {
  await place.accounts.remove((await findPipeline(place, name)).id)
}
