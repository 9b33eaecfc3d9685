/**
 * What every connected account is given: its stream, its budget, a first sync, and a look at its changes every few
 * minutes. Everything here can be done again at any time, by any process, and then changes nothing: the sync has a key, a
 * schedule fires in one process.
 */
import type { AppWork, WorkOptions } from '../../app/runtime.ts'
import { resumeSignedIn } from '../../app/signed-in.ts'
import { followSources, keepSchedules } from '../../app/work.ts'
import { accountOf, SERVICE, sourcesOf, streamOf } from './account.ts'
import type { DriveRuntime } from './runtime.ts'

/** Documents of a paused account that others take over at a time. */
const HANDED_OVER_MAX = 500

/** Sees which accounts there are now, and begins what each needs. A process that only answers leaves that to others. */
export async function startAccounts(runtime: DriveRuntime): Promise<void> {
  const { drive, config, role, engine } = runtime
  await drive.accounts.reload()
  if (role === 'web') return
  const names = drive.accounts.names()
  for (const name of names) {
    await engine.streams.open(streamOf(name))
    const row = await drive.tables.account(name)
    if (row?.checked_at == null) await beginSync(runtime, name)
  }
  const { sync } = drive.kinds
  const spec = `every ${config.drive.poll_minutes}m`
  const wanted = names.map((account) => ({
    kind: sync,
    about: account,
    spec,
    payload: { account },
    stream: streamOf(account),
  }))
  await keepSchedules(runtime, wanted, { kinds: [sync.kind] })
  await forgetOthers(runtime, names)
  await resumeSignedIn(runtime, SERVICE, sourcesOf(names))
  await handOver(runtime)
}

async function beginSync({ engine, drive, ledger }: DriveRuntime, account: string): Promise<void> {
  const stream = streamOf(account)
  const failed = await ledger.jobs({ kind: drive.kinds.sync.kind, stream, state: 'failed', limit: 1 })
  if (failed.length === 0) await engine.enqueue(drive.kinds.sync, { account }, { stream })
}

/** Accounts that are connected no more: nobody searches with their eyes, and what only they saw goes. */
async function forgetOthers({ drive, engine }: DriveRuntime, names: readonly string[]): Promise<void> {
  for (const account of await drive.tables.accounts()) {
    if (names.includes(account)) continue
    const stream = streamOf(account)
    await engine.streams.open(stream)
    await engine.enqueue(drive.kinds.forget, { account }, { stream })
  }
}

/**
 * A document is read by the job of who found it first. Where that account is paused, or must sign in, others who see the
 * document need not wait for it: they take the job over.
 */
async function handOver({ drive, engine, ledger }: DriveRuntime): Promise<void> {
  const paused = new Set(
    (await ledger.pauses()).filter(({ scope }) => scope === 'stream').map(({ target }) => target),
  )
  const { kinds, tables } = drive
  for (const stream of paused) {
    if (!stream.startsWith(`${SERVICE}:`)) continue
    const { kind } = kinds.file
    const waiting = await ledger.jobs({ kind, stream, state: 'pending', limit: HANDED_OVER_MAX })
    for (const { id, payload } of waiting) {
      const { file, version } = kinds.file.payload.parse(JSON.parse(payload))
      const readers = await tables.readers(file, HANDED_OVER_MAX)
      const other = readers.find(
        ({ account }) => account !== accountOf(stream) && !paused.has(streamOf(account)),
      )
      if (!other) continue
      await ledger.cancel(id)
      await engine.enqueue(kinds.file, { file, version }, { stream: streamOf(other.account) })
    }
  }
}

/** Begins for all accounts, and goes on. */
export async function startDriveWork(runtime: DriveRuntime, options: WorkOptions): Promise<AppWork> {
  const refresh = (): Promise<void> => startAccounts(runtime)
  await refresh()
  return { refresh, stop: followSources(options, refresh) }
}
