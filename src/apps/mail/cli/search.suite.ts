/** A home with mail accounts whose archives hold known messages: what the tests of finding mail share. */
import { join } from 'node:path'
import { openVault } from '../../../base/vault.ts'
import { type Ended, environment, sqliteHome, type TestHome } from '../../../cli/jobs/jobs.suite.ts'
import { runCommand } from '../../../cli/main.ts'
import { Accounts, accountKey } from '../../../ledger/accounts.ts'
import { openLedger } from '../../../ledger/open.ts'
import { folderName } from '../account.ts'
import type { FetchedMessage, MessageChange } from '../message.ts'
import { openArchive } from '../store/archive.ts'
import { MailTables, noteLabels } from '../store/tables.ts'

export type MailHome = TestHome & {
  /** Where the archive of an account is. */
  archiveOf(account: string): string
  /** As on a terminal of this width. */
  runOnTerminal(columns: number, ...args: string[]): Promise<Ended>
  /** What went to stdout, byte by byte. */
  bytesOf(...args: string[]): Promise<Buffer>
}

export type TestMailbox = {
  account: string
  messages: readonly FetchedMessage[]
  changes?: readonly MessageChange[]
  labels?: readonly { id: string; name: string }[]
}

export async function mailHome(mailboxes: readonly TestMailbox[]): Promise<MailHome> {
  const home = sqliteHome()
  const archiveOf = (account: string): string => join(home.path, 'mail', folderName(account))
  const ledger = await openLedger(home.url)
  try {
    const accounts = await Accounts.open(ledger)
    const tables = await MailTables.open(ledger)
    const vault = await openVault({ env: environment(home.path), home: home.path })
    for (const { account, messages, changes = [], labels = [] } of mailboxes) {
      const id = { service: 'gmail', name: account }
      const client = { clientId: 'client', scopes: ['https://www.googleapis.com/auth/gmail.readonly'] }
      const secret = { kind: 'oauth', ...client, refreshToken: 'token', obtainedAtMs: 0 }
      await accounts.add({ ...id, settings: {}, sealed: vault.seal(accountKey(id), JSON.stringify(secret)) })
      const { archive_id: archiveId } = await tables.mailbox(account, () => `archive of ${account}`)
      await ledger.transaction((tx) => noteLabels(tx, account, labels))
      const archive = await openArchive({
        folder: archiveOf(account),
        account,
        archiveId,
        shardBy: 'year',
        shardBytesMax: 1e9,
        now: () => Date.UTC(2026, 0, 1),
      })
      await archive.store(messages)
      await archive.apply(changes)
      await archive.close()
    }
  } finally {
    await ledger.close()
  }
  const collect = async (args: string[], terminal: { isTTY?: boolean; columns?: number }) => {
    const written = { stdout: [] as Buffer[], stderr: [] as Buffer[] }
    const stream = (name: keyof typeof written) => ({
      write: (text: string | Uint8Array) => written[name].push(Buffer.from(text as string)),
      ...terminal,
    })
    const env = environment(home.path)
    const code = await runCommand({ args, env, stdout: stream('stdout'), stderr: stream('stderr') })
    return { code, stdout: Buffer.concat(written.stdout), stderr: Buffer.concat(written.stderr) }
  }
  return {
    ...home,
    archiveOf,
    async runOnTerminal(columns, ...args) {
      const { code, stdout, stderr } = await collect(args, { isTTY: true, columns })
      return { code, stdout: stdout.toString(), stderr: stderr.toString() }
    },
    bytesOf: async (...args) => (await collect(args, {})).stdout,
  }
}

export function mail(
  id: string,
  options: { atMs: number; raw: string; labelIds?: readonly string[]; source?: 'gmail' | 'import' },
): FetchedMessage {
  const { atMs, raw, labelIds = [], source = 'gmail' } = options
  const bytes = Buffer.from(raw.replaceAll(/\r?\n/g, '\r\n'))
  return { id, threadId: `t-${id}`, historyId: '1', labelIds, internalMs: atMs, raw: bytes, source }
}
