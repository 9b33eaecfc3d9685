/** `tidemark drive who`: who can find a file, and through what. */
import type { CliContext } from '../../../app/command.ts'
import { OWNER } from '../../../app/user.ts'
import { UsageError } from '../../../base/errors.ts'
import { isoTime } from '../../../base/moment.ts'
import { SERVICE } from '../account.ts'
import type { DriveRuntime } from '../runtime.ts'
import { whoSees } from '../who.ts'
import { withDrive } from './context.ts'

export async function showWho(context: CliContext, wanted: string): Promise<void> {
  await withDrive(context, async (opened) => {
    const { drive, users } = opened
    const seen = (await whoSees(drive.tables, await fileId(opened, wanted)))!
    await users.note(OWNER, 'who', `${SERVICE}:${seen.id}`)
    context.output.listing({
      columns: [
        { title: 'account', value: ({ account }) => account },
        { title: 'as', value: ({ kind }) => kind },
        { title: 'through', value: ({ via }) => via },
        { title: 'until', value: ({ expiresAtMs }) => (expiresAtMs === null ? '' : isoTime(expiresAtMs)) },
      ],
      rows: seen.people,
      json: seen,
      empty: `Nobody who is connected finds ${seen.name}.`,
    })
  })
}

/** In the addresses of Google the id is the longest piece. */
const ID_IN_ADDRESS = /(?:\/(?:d|folders|file\/d)\/|[?&]id=)([\w-]{10,200})/

async function fileId({ drive }: DriveRuntime, wanted: string): Promise<string> {
  const id = ID_IN_ADDRESS.exec(wanted)?.[1] ?? wanted
  if (await drive.tables.file(id)) return id
  const named = await drive.tables.named(wanted, 2)
  if (named.length === 1) return named[0]!.id
  if (named.length > 1) {
    throw new UsageError(`Several files are called ${wanted}.`, {
      code: 'file-unclear',
      hint: `Say which by its id: ${named.map((one) => one.id).join(', ')}, …`,
    })
  }
  throw new UsageError(`No connected account sees a file that is called ${wanted}, or has that id.`, {
    code: 'file-unknown',
    hint: 'Give its whole name, its id, or its address in Google Drive.',
  })
}
