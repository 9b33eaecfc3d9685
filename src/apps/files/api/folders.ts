/** The folders that are kept in step: how each stands, and looking at both sides now. */
import { z } from 'zod'
import { accountText, pageOfRows, readJsonCursor } from '../../../app/inputs.ts'
import { readCacheOf } from '../../../app/ledger-read-cache.ts'
import { already, cursorQuery, done, doneSchema, pageOf } from '../../../app/schemas.ts'
import { pauseNote, signInNeeded } from '../../../app/sync-request.ts'
import { asTidemarkError } from '../../../base/errors.ts'
import { MASTER_KEY_VARIABLE } from '../../../base/vault.ts'
import { counted } from '../../../base/wording.ts'
import { availableDrives } from '../drives.ts'
import { folderPairSettings, SERVICE, streamOf } from '../folder-pair.ts'
import { removeFolderPair } from '../folder-removal.ts'
import { changeSettings, settingsWith, syncChanged } from '../folder-settings.ts'
import { addFolderPair, findAccount, markerOf, topText } from '../new-folder.ts'
import { resumeShares } from '../shared-folder.ts'
import { fileStatus } from '../status.ts'
import type { FolderPairRow } from '../store/contract.ts'
import { allowedPlace } from './folder-place.ts'
import { elsewhere, folderPairRow, folderParams, isHere, lookedInto } from './inputs.ts'
import { type FilesServices, route } from './route.ts'
import {
  drivesSchema,
  type FilesSnapshot,
  type FolderSettings,
  type FolderView,
  folderSchema,
  folderSettingsSchema,
  reportedSchema,
} from './schemas.ts'
import { readTransfers } from './transfers.ts'

const listFolders = route('GET /api/files/folders', {
  etag: true,
  summary: 'The folders that are kept in step with OneDrive',
  answer: z.object({ items: z.array(folderSchema) }),
  handle: async (_input, services) => ({ items: await readFolders(services) }),
})

const showFolder = route('GET /api/files/folders/{name}', {
  summary: 'One of them',
  params: folderParams,
  answer: folderSchema,
  handle: async ({ params: { name } }, services) => folderView(services, await folderPairRow(services, name)),
})

/** Those who ask at the same time share one look. */
export function readFolders(services: FilesServices): Promise<FolderView[]> {
  const { ledger, clock, files } = services
  return readCacheOf(ledger).read('files folders', clock, async () => {
    const views: FolderView[] = []
    for (const row of await files.store.folderPairs()) views.push(await folderView(services, row))
    return views
  })
}

async function folderView({ ledger, files }: FilesServices, row: FolderPairRow): Promise<FolderView> {
  const {
    totals,
    reported: _,
    mode: __,
    waits: ___,
    isFull: ____,
    stoppedSinceMs: _____,
    isLooking: ______,
    ...status
  } = await fileStatus({ store: files.store, ledger }, row.name)
  const { mode, conflicts: policy } = folderPairSettings.parse(JSON.parse(row.settings))
  return { ...status, ...totals, mode, policy, stream: streamOf(row.name), isHere: isHere(row) }
}

const listReported = route('GET /api/files/folders/{name}/reported', {
  summary: 'What is left alone, each with its reason',
  params: folderParams,
  query: z.object(cursorQuery),
  answer: pageOf(reportedSchema),
  handle: async ({ params: { name }, query: { limit, cursor }, user }, services) => {
    await lookedInto(services, user, { name, what: 'listed what is left alone' })
    const after = readJsonCursor(cursor, z.string())
    const rows = await services.files.store.reported(name, { after, limit: limit + 1 })
    return pageOfRows(rows, { limit, view: (row) => row, cursor: ({ node }) => node })
  },
})

const syncNow = route('POST /api/files/folders/{name}/sync', {
  status: 202,
  summary: 'Looks at both sides now, instead of when their time comes',
  description: '`already`: that is under way. 409: its account has to sign in again.',
  errors: [409],
  params: folderParams,
  answer: doneSchema,
  handle: async ({ params: { name } }, services) => {
    const { account } = await folderPairRow(services, name)
    const known = await services.accounts.find(SERVICE, account)
    if (known?.state !== 'ready') throw signInNeeded([account])
    const { engine, files, ledger } = services
    const stream = streamOf(name)
    // Whoever asks may have put right what was in the way.
    files.kinds.obstacles.roomMade(name)
    await ledger.wakeStream(stream)
    await resumeShares(services, [name])
    const { outcome } = await engine.enqueue(files.kinds.sync, { drive: name }, { stream })
    const held = await pauseNote(services, [{ name, stream }])
    return outcome === 'ignored'
      ? already(`A look at both sides of ${name} is under way already.${held}`)
      : done(`Looking at both sides of ${name}.${held}`)
  },
})

const removeFolder = route('DELETE /api/files/folders/{name}', {
  summary: 'Stops keeping a folder in step; the files stay as they are, on both sides',
  description:
    'What is under way is stopped first. 409: the folder is on another machine. 503: that does not end; nothing was removed.',
  errors: [409, 503],
  params: folderParams,
  answer: doneSchema,
  handle: async ({ params: { name } }, services) => {
    const row = await folderPairRow(services, name)
    if (!isHere(row)) throw elsewhere(row)
    const { unmarked } = await removeFolderPair(services, row, services.clock)
    const marker =
      unmarked === undefined
        ? ''
        : ` Its marker could not be deleted (${asTidemarkError(unmarked).message}): delete ${markerOf(row.root)} before you add it again.`
    return done(`${name} is not kept in step any more. ${row.root} and OneDrive stay as they are.${marker}`)
  },
})

const showSettings = route('GET /api/files/folders/{name}/settings', {
  summary: 'What holds for a folder: direction, conflicts, what takes part',
  params: folderParams,
  answer: folderSettingsSchema,
  handle: async ({ params: { name } }, services) => settingsView(await folderPairRow(services, name)),
})

const setSettings = route('PUT /api/files/folders/{name}/settings', {
  summary: 'Changes what holds for a folder; what is not said stays as it was',
  description:
    'It holds with the next look at both sides, which begins at once. What is left out from now on stays where it is, on both sides. 400: a path or a pattern is none. 404: the account may only read.',
  params: folderParams,
  body: folderSettingsSchema.partial().strict(),
  answer: folderSettingsSchema,
  handle: async ({ params: { name }, body }, services) => {
    const { policy: conflicts, sizeMbMax: maxSize, ...rest } = body
    const row = await folderPairRow(services, name)
    const options = { ...rest, conflicts, maxSize }
    const { isOther } = await changeSettings(services, row, (before) => settingsWith(before, options))
    if (isOther) {
      await syncChanged(services, row)
      readCacheOf(services.ledger).forget()
    }
    return settingsView(await folderPairRow(services, name))
  },
})

function settingsView({ settings }: FolderPairRow): FolderSettings {
  const { mode, conflicts, filter, follow_symlinks } = folderPairSettings.parse(JSON.parse(settings))
  return {
    mode,
    policy: conflicts,
    only: filter.sync_paths,
    skip: filter.skip,
    skipDotfiles: filter.skip_dotfiles,
    sizeMbMax: filter.size_mb_max,
    followLinks: follow_symlinks,
  }
}

const PATH_LENGTH_MAX = 4_096

const listDrives = route('GET /api/files/drives', {
  summary: 'What a folder can be kept in step with: asks OneDrive',
  description:
    'The drives of the account, the libraries of SharePoint that it follows and may see, and folders that others share with it.',
  errors: [404, 409, 422, 503],
  query: z.object({
    account: accountText.optional().describe('Whose; not needed where one account is connected'),
  }),
  answer: drivesSchema,
  handle: async ({ query }, services) => {
    const account = await findAccount(services, query.account)
    if (account.state !== 'ready') throw signInNeeded([account.name])
    const { drives, hint } = await availableDrives(services, account)
    return {
      drives: drives.map(({ usedBytes, owner, ...drive }) => ({
        ...drive,
        usedBytes: usedBytes ?? null,
        owner: owner ?? null,
      })),
      isWide: account.settings.access === 'shared',
      hint: hint ?? null,
    }
  },
})

const addFolder = route('POST /api/files/folders', {
  status: 201,
  summary: 'Begins to keep a folder of the server’s machine in step with the OneDrive of an account',
  description:
    '403: the folder is not in a place where folders may be added: in the user’s home, or where ' +
    '`files.allowed_roots` says; on a server that others reach, only the latter. Folders of the home whose names ' +
    'begin with a dot, of the system and of Tidemark itself take the command line.',
  errors: [404, 409, 422],
  body: z.strictObject({
    account: accountText.optional().describe('Whose OneDrive; not needed where one account is connected'),
    drive: z
      .string()
      .trim()
      .min(1)
      .max(2_000)
      .optional()
      .describe(
        'Its id or its name, as the list of drives has it, or the sharing link of a folder; the account’s own if left out',
      ),
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
  handle: async ({ body }, services) => {
    const { config, home, engine, files, origins, vault } = services
    const key = vault.where === MASTER_KEY_VARIABLE ? [] : [vault.where]
    const written = [...origins.values()].flatMap((origin) => (origin.kind === 'file' ? [origin.path] : []))
    const root = allowedPlace(body.path, { config, own: [home, ...key, ...new Set(written)] })
    const added = await addFolderPair(services, {
      root,
      account: body.account,
      drive: body.drive,
      name: body.name,
      settings: { mode: body.mode, conflicts: body.policy },
    })
    const stream = streamOf(added.name)
    await engine.streams.open(stream)
    await engine.enqueue(files.kinds.sync, { drive: added.name }, { stream })
    const { entries } = added
    const merged =
      entries === 0
        ? ''
        : ` What is in it (${counted(entries, 'thing')} at its top) is merged with what is in OneDrive; nothing is deleted.`
    return {
      name: added.name,
      root: added.root,
      text: `From now on ${added.root} is kept in step with ${topText(added)}.${merged}`,
    }
  },
})

const TRANSFERS_MAX = 30

export async function readSnapshot(services: FilesServices): Promise<FilesSnapshot> {
  return {
    folders: await readFolders(services),
    transfers: await readTransfers(services, { limit: TRANSFERS_MAX }),
  }
}

export const folderRoutes = [
  listFolders,
  showFolder,
  showSettings,
  setSettings,
  listReported,
  listDrives,
  addFolder,
  syncNow,
  removeFolder,
]
