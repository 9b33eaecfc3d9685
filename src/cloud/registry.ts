/**
 * The services whose accounts can be connected. To add one, write its folder and name it here.
 *
 * What is said here is light: whoever prints `--help` reads it.
 */
import type { AccountService, ServiceFlag } from './account-service.ts'

export type ServiceEntry = {
  readonly name: string
  readonly title: string
  readonly flags: readonly ServiceFlag[]
  /** For the help: how much its accounts may do, and what its commands tell besides what all do. */
  readonly levels: string
  readonly told: { add?: string; check: string }
  load(): Promise<AccountService>
}

export const services: readonly ServiceEntry[] = [
  {
    name: 'gmail',
    title: 'Gmail',
    flags: ['readOnly', 'modify', 'full', 'paste', 'serviceAccount'],
    levels: 'readonly, modify or full',
    told: { check: 'messages' },
    load: async () => (await import('./gmail/account.ts')).gmailService,
  },
  {
    name: 'onedrive',
    title: 'OneDrive',
    flags: ['readOnly', 'shared', 'device'],
    levels: 'readonly, readwrite or shared',
    told: { add: 'drive {type}', check: 'drive {type, usedBytes, totalBytes}' },
    load: async () => (await import('./onedrive/account.ts')).oneDriveService,
  },
  {
    name: 'drive',
    title: 'Google Drive',
    flags: ['readOnly', 'paste', 'serviceAccount'],
    levels: 'readonly',
    told: { check: 'usedBytes' },
    load: async () => (await import('./drive/account.ts')).driveService,
  },
]

/** Undefined for one that this Tidemark does not know: another one may have connected its account. */
export async function findService(name: string): Promise<AccountService | undefined> {
  return services.find((one) => one.name === name)?.load()
}

/** `tidemark account add gmail`, one for each service. */
export const CONNECT_COMMANDS = services.map(({ name }) => `tidemark account add ${name}`)

export const CONNECT_HINT = `Connect one with: ${CONNECT_COMMANDS.join(', or ')}`
