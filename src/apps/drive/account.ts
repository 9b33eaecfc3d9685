/** A Drive account as the jobs see it, and the names that follow from its address. */
import type { AccountSource } from '../../app/signed-in.ts'
import type { DriveClient } from '../../cloud/drive/client.ts'

/** The service, the app, and the source of its documents in the index. */
export const SERVICE = 'drive'

export type DriveAccount = { name: string; stream: string; client: DriveClient }

export type DriveAccounts = {
  names(): readonly string[]
  /** Opens its client when first asked for; one that was connected meanwhile is found. */
  get(name: string): Promise<DriveAccount>
  /** The budget that paces its calls, known to the engine from then on. */
  budget(name: string): string
  /** Sees accounts that were connected or removed since, and settings that changed. */
  reload(): Promise<void>
}

/** The account's stream, and the principal through which its owner sees documents. */
export function streamOf(account: string): string {
  return `${SERVICE}:${account}`
}

export function accountOf(stream: string): string {
  return stream.slice(`${SERVICE}:`.length)
}

export function sourcesOf(names: readonly string[]): AccountSource[] {
  return names.map((name) => ({ stream: streamOf(name), account: name }))
}

export function unitsOf(account: string): string {
  return `drive-units:${account}`
}
