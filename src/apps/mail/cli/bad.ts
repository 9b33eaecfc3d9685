/** `tidemark mail bad`: messages that could not be fetched, why, and trying them again. */
import type { Command } from 'commander'
import type { CliContext } from '../../../app/command.ts'
import { UsageError } from '../../../base/errors.ts'
import type { BadRow } from '../../../ledger/contract.ts'

type Choice = { account?: string }

export function registerMailBad(mail: Command, context: CliContext): void {
  const bad = mail.command('bad').description('messages that could not be fetched')
  bad
    .command('list')
    .description('list them, each with its reason')
    .option('--account <address>', 'only this account')
    .action((options: Choice) => list(context, options))
  bad
    .command('show')
    .description('show all that is known about one')
    .argument('<id>', "Gmail's id of the message")
    .option('--account <address>', 'only this account')
    .action((id: string, options: Choice) => show(context, id, options))
  bad
    .command('retry')
    .description('fetch them again, now')
    .argument('[ids...]', "Gmail's ids of messages; all of them if none is named")
    .option('--account <address>', 'only this account')
    .action((ids: string[], options: Choice) => retry(context, ids, options))
}

async function list(context: CliContext, options: Choice): Promise<void> {
  const rows = await read(context, options)
  const { distance } = await import('../../../base/moment.ts')
  const now = Date.now()
  context.output.listing<BadRow>({
    columns: [
      { title: 'account', value: ({ stream }) => stream?.slice('mail:'.length) },
      { title: 'message', value: ({ item }) => item },
      { title: 'tries', value: ({ tries }) => tries, align: 'right' },
      { title: 'last tried', value: ({ last_tried }) => distance(last_tried, now) },
      { title: 'reason', value: ({ reason }) => reason },
    ],
    rows,
    json: await Promise.all(rows.map(toJson)),
    empty: 'No message is bad.',
  })
}

async function show(context: CliContext, id: string, options: Choice): Promise<void> {
  const found = (await read(context, options)).find(({ item }) => item === id)
  if (!found) throw notBad([id])
  const row = await toJson(found)
  if (context.output.json) context.output.value(row)
  else for (const [name, value] of Object.entries(row)) context.output.line(`${name.padEnd(10)} ${value}`)
}

async function retry(context: CliContext, ids: readonly string[], options: Choice): Promise<void> {
  const { withMailEngine, chosen } = await import('./context.ts')
  const { runMailWork } = await import('./sync-run.ts')
  await withMailEngine(context, {}, async (opened) => {
    const names = chosen(opened.mail, options)
    const rows = (await Promise.all(names.map((name) => readStream(opened.ledger, name)))).flat()
    const wanted = ids.length > 0 ? rows.filter(({ item }) => ids.includes(item)) : rows
    const unknown = ids.filter((id) => !wanted.some(({ item }) => item === id))
    if (unknown.length > 0) throw notBad(unknown)
    if (wanted.length === 0) {
      context.output.note('No message is bad.')
      return
    }
    await opened.ledger.retryBad({ ids: wanted.map(({ id }) => id) })
    await runMailWork(context, opened, names)
  })
}

async function read(context: CliContext, options: Choice): Promise<BadRow[]> {
  const { withMailArchive } = await import('./context.ts')
  return withMailArchive(context, options, async ({ ledger, archives }) =>
    (await Promise.all(archives.map(({ name }) => readStream(ledger, name)))).flat(),
  )
}

type Ledger = Parameters<Parameters<typeof import('../../../app/with-ledger.ts').withLedger>[1]>[0]['ledger']

async function readStream(ledger: Ledger, account: string): Promise<BadRow[]> {
  const { badMessages } = await import('../bad-messages.ts')
  return badMessages(ledger, `mail:${account}`)
}

function notBad(ids: readonly string[]): UsageError {
  return new UsageError(`Not among the bad messages: ${ids.join(', ')}.`, {
    hint: 'See which are: tidemark mail bad list',
  })
}

async function toJson(row: BadRow) {
  const { isoTime } = await import('../../../base/moment.ts')
  return {
    account: row.stream?.slice('mail:'.length) ?? null,
    message: row.item,
    reason: row.reason,
    errorKind: row.error_kind,
    firstSeen: isoTime(row.first_seen),
    lastTried: isoTime(row.last_tried),
    tries: row.tries,
  }
}
