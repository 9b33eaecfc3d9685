/** A new folder: what is in it and what is in OneDrive are merged, and nothing is deleted. */
import { z } from 'zod'
import { streamOf } from '../../apps/file-sync/drive.ts'
import { formatCount } from '../../format.ts'
import { plural } from '../../wording.ts'
import { accountText } from '../mail-api/inputs.ts'
import { addDrive } from '../new-drive.ts'
import { defineRoute } from '../route.ts'
import { looksAt } from '../shared-looks.ts'
import { allowedPlace } from './folder-place.ts'

const PATH_LENGTH_MAX = 4_096

const addFolder = defineRoute(
  {
    ...{ method: 'post', path: '/api/files/drives', tag: 'files', access: 'write', status: 201 },
    summary: 'Begins to keep a folder of the server’s machine in step with the OneDrive of an account',
    description:
      '403: the folder is not in a place where folders may be added: in the user’s home, or where ' +
      '`files.allowed_roots` says; on a server that others reach, only the latter.',
    errors: [404, 409, 422],
    body: z.strictObject({
      account: accountText.optional().describe('Whose OneDrive; not needed where one account is connected'),
      path: z
        .string()
        .trim()
        .min(1)
        .max(PATH_LENGTH_MAX)
        .describe('On the machine of the server, whole or beginning with ~/; it is made if it is not there'),
      name: z
        .string()
        .trim()
        .min(1)
        .max(100)
        .optional()
        .describe('What it is called here; that of the folder if left out'),
      mode: z
        .enum(['two-way', 'download-only', 'upload-only'])
        .default('two-way')
        .describe('Whether changes go both ways, only come here, or only go to OneDrive'),
      policy: z
        .enum(['keep-both', 'keep-local', 'keep-remote', 'manual'])
        .default('keep-both')
        .describe('What becomes of a file that was changed on both sides; `manual`: you decide'),
    }),
    answer: z.object({ name: z.string(), root: z.string(), text: z.string() }),
  },
  async ({ body }, services) => {
    const { config, home, engine, files, ledger } = services
    const root = allowedPlace(body.path, { config, home })
    const added = await addDrive(services, {
      ...{ root, account: body.account, driveId: undefined, name: body.name },
      settings: { mode: body.mode, conflicts: body.policy },
    })
    const stream = streamOf(added.name)
    await engine.streams.open(stream)
    await engine.enqueue(files.kinds.sync, { drive: added.name }, { stream })
    looksAt(ledger).forget()
    const { entries } = added
    const merged =
      entries === 0
        ? ''
        : ` What is in it (${formatCount(entries)} ${plural(entries, 'thing')} at its top) is merged with what is in OneDrive; nothing is deleted.`
    return {
      ...{ name: added.name, root: added.root },
      text: `${added.root} is kept in step with the OneDrive of ${added.account} from now on.${merged}`,
    }
  },
)

export const folderAddRoutes = [addFolder]
