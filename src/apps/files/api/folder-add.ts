/** A new folder: what is in it and what is in OneDrive are merged, and nothing is deleted. */
import { z } from 'zod'
import { accountText } from '../../../app/inputs.ts'
import { readCacheOf } from '../../../app/ledger-read-cache.ts'
import { formatCount } from '../../../base/format.ts'
import { MASTER_KEY_VARIABLE } from '../../../base/vault.ts'
import { plural } from '../../../base/wording.ts'
import { streamOf } from '../folder-pair.ts'
import { addFolderPair } from '../new-folder.ts'
import { allowedPlace } from './folder-place.ts'
import { defineRoute } from './route.ts'

const PATH_LENGTH_MAX = 4_096

const addFolder = defineRoute(
  {
    ...{ method: 'post', path: '/api/files/drives', tag: 'files', access: 'write', status: 201 },
    summary: 'Begins to keep a folder of the server’s machine in step with the OneDrive of an account',
    description:
      '403: the folder is not in a place where folders may be added: in the user’s home, or where ' +
      '`files.allowed_roots` says; on a server that others reach, only the latter. Folders of the home whose names ' +
      'begin with a dot, of the system and of Tidemark itself take the command line.',
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
    const { config, home, engine, files, ledger, origins, vault } = services
    const key = vault.where === MASTER_KEY_VARIABLE ? [] : [vault.where]
    const written = [...origins.values()].flatMap((origin) => (origin.kind === 'file' ? [origin.path] : []))
    const root = allowedPlace(body.path, { config, own: [home, ...key, ...new Set(written)] })
    const added = await addFolderPair(services, {
      ...{ root, account: body.account, driveId: undefined, name: body.name },
      settings: { mode: body.mode, conflicts: body.policy },
    })
    const stream = streamOf(added.name)
    await engine.streams.open(stream)
    await engine.enqueue(files.kinds.sync, { drive: added.name }, { stream })
    readCacheOf(ledger).forget()
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
