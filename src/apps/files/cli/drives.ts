/** `tidemark files drives`: what a folder can be kept in step with. */
import type { CliContext } from '../../../app/command.ts'
import { formatBytes } from '../../../base/format.ts'
import { availableDrives } from '../drives.ts'
import { findAccount } from '../new-folder.ts'
import { withFiles } from './context.ts'

export async function listDrives(
  context: CliContext,
  { account: wanted }: { account?: string },
): Promise<void> {
  const { output } = context
  await withFiles(context, async (opened) => {
    const account = await findAccount(opened, wanted)
    const { drives, hint } = await availableDrives(opened, account)
    output.listing({
      columns: [
        { title: 'name', value: ({ name }) => name },
        { title: 'type', value: ({ type, owner }) => (owner ? `shared by ${owner}` : TYPES[type]) },
        { title: 'used', value: ({ usedBytes }) => (usedBytes === undefined ? '' : formatBytes(usedBytes)) },
        { title: 'id', value: ({ id }) => id },
      ],
      rows: drives,
      json: {
        account: account.name,
        drives: drives.map(({ usedBytes, owner, ...drive }) => ({
          ...drive,
          usedBytes: usedBytes ?? null,
          owner: owner ?? null,
        })),
        hint: hint ?? null,
      },
      empty: `${account.name} has no drive.`,
    })
    if (output.json) return
    if (hint !== undefined) output.note(hint)
    output.note('Choose one with: tidemark files sync FOLDER --drive NAME, or with its id')
  })
}

const TYPES = {
  personal: 'personal',
  business: 'of work or school',
  documentLibrary: 'a library of SharePoint',
  sharedFolder: 'shared with you',
  unknown: '',
} as const
