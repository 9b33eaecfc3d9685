/** Making, changing and forgetting pipelines: the same for the command line and the API. */

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

/** Refuses what does not fit, and says which part of it. */
export function checkConfig(input: unknown): PipelineConfig {
  const parsed = pipelineSchema.safeParse(input)
  if (!parsed.success) {
    const issue = parsed.error.issues[0]
    throw new UsageError(
      `This is no configuration of a pipeline: ${issue?.path.join('.') || 'all of it'}: ${issue?.message}.`,
      { code: 'pipeline-config', cause: parsed.error },
    )
  }
  const config = parsed.data
  if (config.queue.kind === 'none' && config.location === null) {
    throw new UsageError('The pipeline has neither a queue nor anything to list.', {
      code: 'pipeline-config',
      hint: 'Say where messages come from (--sqs, --folder, --inbox), or what is listed (--bucket).',
    })
  }
  return config
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
  const checked = checkConfig(config)
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
