/**
 * Google Drive's API as the rest of Tidemark sees it: typed calls that are paced and classified, all of which only read.
 * Holds no state of its own; what it needs of the world is passed in.
 *
 * - every call names `supportsAllDrives`: without it, what is in shared drives does not exist
 * - every failure is a TidemarkError, except the reason of an aborted signal, which is passed on as it is
 * - bytes that break off are gone on with from where they broke off
 */
import { createHash } from 'node:crypto'
import type { z } from 'zod'
import type { Clock } from '../../base/clock.ts'
import { asTidemarkError, UsageError } from '../../base/errors.ts'
import { type HttpCall, type TokenSource, Transport } from '../http-transport.ts'
import type { Fetch } from '../oauth.ts'
import type { Pace } from '../pace.ts'
import * as driveErrors from './errors.ts'
import {
  aboutSchema,
  type Change,
  changeListSchema,
  type DriveFile,
  decode,
  driveListSchema,
  driveSchema,
  FILE_FIELDS,
  FILE_ID,
  fileListSchema,
  fileSchema,
  type Permission,
  parseJson,
  permissionListSchema,
  type SharedDrive,
  startPageTokenSchema,
} from './schema.ts'

export type { Change, DriveFile, Permission, SharedDrive } from './schema.ts'
export type { Pace }

export type DriveClientOptions = {
  fetch: Fetch
  clock: Clock
  /** `https://www.googleapis.com` */
  apiUrl: string
  token: TokenSource
  pace: Pace
  /** Silence of the connection, not the length of the call. */
  timeoutMs?: number
}

type CallOptions = { signal?: AbortSignal | undefined }

/** Undefined: all that is owned by or shared with the user. */
export type Corpus = { driveId: string | undefined }

export type FilePage = {
  files: DriveFile[]
  nextPageToken: string | undefined
  /** Google did not look everywhere: what is missing here says nothing. */
  isIncomplete: boolean
}

export type ChangePage = {
  changes: Change[]
  /** Where to go on, now or the next time. */
  nextToken: string
  isLast: boolean
}

export type DownloadOptions = CallOptions & {
  bytesMax: number
  resourceKey?: string | undefined
  /** Checked where it is known: what does not have it is damaged. */
  md5?: string | undefined
  sha256?: string | undefined
}

const TIMEOUT_MS = 30_000
const LIST_PAGE = 1_000
const CHANGES_PAGE = 1_000
const PERMISSIONS_PAGE = 100
const DRIVES_PAGE = 100
/** Beyond any organisation: a service that answers with next pages for ever must end. */
const PAGES_MAX = 1_000
const ANSWER_BYTES_MAX = 32 * 1024 * 1024
/** Broken connections within one download before it is the whole call that failed. */
const RESUMES_MAX = 3

export class DriveClient {
  readonly #options: DriveClientOptions
  readonly #transport: Transport

  constructor(options: DriveClientOptions) {
    if (!/^https?:$/.test(URL.parse(options.apiUrl)?.protocol ?? '')) {
      throw new UsageError('The address of the Drive API is no web address.')
    }
    this.#options = options
    const timeoutMs = options.timeoutMs ?? TIMEOUT_MS
    this.#transport = new Transport({ ...options, timeoutMs, errors: driveErrors })
  }

  /** Whose Drive it is. */
  async about(options: CallOptions = {}): Promise<{ address: string; usedBytes: number | undefined }> {
    const query = { fields: 'user(emailAddress,displayName),storageQuota(usage,limit)' }
    const { user, storageQuota } = await this.#json('about.get', '/about', query, aboutSchema, options)
    return { address: user.emailAddress.toLowerCase(), usedBytes: storageQuota?.usage }
  }

  /** All shared drives that the account is a member of. */
  async drives(options: CallOptions = {}): Promise<SharedDrive[]> {
    const drives: SharedDrive[] = []
    let pageToken: string | undefined
    for (let page = 0; page < PAGES_MAX; page++) {
      const query = { pageSize: DRIVES_PAGE, pageToken, fields: 'nextPageToken,drives(id,name)' }
      const answer = await this.#json('drives.list', '/drives', query, driveListSchema, options)
      drives.push(...answer.drives)
      pageToken = answer.nextPageToken
      if (!pageToken) return drives
    }
    throw driveErrors.damagedAnswer('the shared drives', 'they have no end')
  }

  drive(driveId: string, options: CallOptions = {}): Promise<SharedDrive> {
    return this.#json(
      'drives.get',
      `/drives/${encodedId(driveId)}`,
      { fields: 'id,name' },
      driveSchema,
      options,
    )
  }

  /** Where changes begin from now on. To be asked for before a listing: what happens meanwhile is then not missed. */
  async startPageToken({ driveId, signal }: Corpus & CallOptions): Promise<string> {
    const query = { supportsAllDrives: true, driveId }
    const answer = await this.#json(
      'changes.getStartPageToken',
      '/changes/startPageToken',
      query,
      startPageTokenSchema,
      { signal },
    )
    return answer.startPageToken
  }

  /**
   * `inDomain`: what everybody of the domain may find, which is not listed with what is shared with the user. `within`:
   * what lies in a folder. `onlyFolders`: all of them. `names`: only what is called so. Fails with the code
   * `page-token-invalid` where the page is not known any more.
   */
  async list(
    page: Corpus &
      CallOptions & {
        pageToken?: string | undefined
        inDomain?: boolean
        within?: string | undefined
        onlyFolders?: boolean
        names?: readonly string[]
      },
  ): Promise<FilePage> {
    const { driveId, pageToken, inDomain, within, onlyFolders, names, signal } = page
    const terms = ['trashed = false']
    if (onlyFolders) terms.push(`mimeType = '${FOLDER}'`)
    if (within !== undefined) terms.push(`'${encodedId(within)}' in parents`)
    if (names) terms.push(`(${names.map((name) => `name = '${quoted(name)}'`).join(' or ')})`)
    const query = {
      corpora: inDomain ? 'domain' : driveId === undefined ? 'user' : 'drive',
      driveId,
      includeItemsFromAllDrives: true,
      supportsAllDrives: true,
      pageSize: LIST_PAGE,
      pageToken,
      q: terms.join(' and '),
      fields: `nextPageToken,incompleteSearch,files(${FILE_FIELDS})`,
    }
    const answer = await this.#json('files.list', '/files', query, fileListSchema, { signal })
    return {
      files: answer.files,
      nextPageToken: answer.nextPageToken,
      isIncomplete: answer.incompleteSearch,
    }
  }

  file(id: string, options: CallOptions & { resourceKey?: string | undefined } = {}): Promise<DriveFile> {
    const query = { supportsAllDrives: true, fields: FILE_FIELDS }
    const headers = keyHeaders(id, options.resourceKey)
    return this.#json('files.get', `/files/${encodedId(id)}`, query, fileSchema, options, headers)
  }

  /** What changed at `token` or later. Fails with the code `page-token-invalid` for a token that is not known. */
  async changes(page: Corpus & CallOptions & { token: string }): Promise<ChangePage> {
    const { driveId, token, signal } = page
    const query = {
      pageToken: token,
      driveId,
      pageSize: CHANGES_PAGE,
      includeItemsFromAllDrives: true,
      supportsAllDrives: true,
      includeRemoved: true,
      spaces: 'drive',
      fields: `nextPageToken,newStartPageToken,changes(changeType,removed,time,fileId,driveId,file(${FILE_FIELDS}))`,
    }
    const answer = await this.#json('changes.list', '/changes', query, changeListSchema, { signal })
    const nextToken = answer.nextPageToken ?? answer.newStartPageToken
    if (nextToken === undefined) {
      throw driveErrors.damagedAnswer('the changes', 'they do not say where to go on')
    }
    return { changes: answer.changes, nextToken, isLast: answer.nextPageToken === undefined }
  }

  /** With whom a file or a shared drive is shared; refused to who may not share it. */
  async permissions(id: string, options: CallOptions = {}): Promise<Permission[]> {
    const permissions: Permission[] = []
    let pageToken: string | undefined
    for (let page = 0; page < PAGES_MAX; page++) {
      const query = {
        supportsAllDrives: true,
        pageSize: PERMISSIONS_PAGE,
        pageToken,
        fields:
          'nextPageToken,permissions(id,type,role,emailAddress,domain,allowFileDiscovery,expirationTime,deleted,permissionDetails)',
      }
      const path = `/files/${encodedId(id)}/permissions`
      const answer = await this.#json('permissions.list', path, query, permissionListSchema, options)
      permissions.push(...answer.permissions)
      pageToken = answer.nextPageToken
      if (!pageToken) return permissions
    }
    throw driveErrors.damagedAnswer('the permissions', 'they have no end')
  }

  /** The bytes of a file that is no native document. */
  async download(id: string, options: DownloadOptions): Promise<Buffer> {
    const path = `/files/${encodedId(id)}`
    const query = { alt: 'media', supportsAllDrives: true }
    const chunks: Uint8Array[] = []
    const bytes = { n: 0 }
    for (let resumes = 0; ; resumes++) {
      try {
        await this.#read('files.download', { path, query, id }, { ...options, chunks, bytes })
        break
      } catch (thrown) {
        const error = asTidemarkError(thrown)
        const isBroken = error.kind === 'transient' && bytes.n > 0 && !options.signal?.aborted
        if (!isBroken || resumes >= RESUMES_MAX) throw thrown
      }
    }
    const whole = Buffer.concat(chunks)
    for (const algorithm of ['md5', 'sha256'] as const) {
      const listed = options[algorithm]
      if (listed === undefined || createHash(algorithm).update(whole).digest('hex') === listed) continue
      throw driveErrors.damagedAnswer('the file', 'it does not have the checksum that was listed')
    }
    return whole
  }

  /** A native document in another format; Google gives at most 10 MB. */
  async export(id: string, mimeType: string, options: DownloadOptions): Promise<Buffer> {
    const chunks: Uint8Array[] = []
    const call = { path: `/files/${encodedId(id)}/export`, query: { mimeType }, id }
    await this.#read('files.export', call, { ...options, chunks, bytes: { n: 0 } })
    return Buffer.concat(chunks)
  }

  /** Adds to `chunks` what comes from `bytes.n` on. */
  #read(
    method: string,
    { path, query, id }: { path: string; query: HttpCall['query']; id: string },
    into: DownloadOptions & { chunks: Uint8Array[]; bytes: { n: number } },
  ): Promise<void> {
    const { chunks, bytes, bytesMax, resourceKey, signal } = into
    const headers: Record<string, string> = keyHeaders(id, resourceKey)
    // Bytes are counted, so they must come as they are.
    headers['accept-encoding'] = 'identity'
    if (bytes.n > 0) headers.range = `bytes=${bytes.n}-`
    return this.#paced(method, signal, (paced) =>
      this.#transport.send(
        { verb: 'GET', path: `${BASE}${path}`, query, headers },
        async (answer) => {
          // The whole file again, although a part was asked for.
          if (bytes.n > 0 && answer.status !== 206) {
            chunks.length = 0
            bytes.n = 0
          }
          const expected = Number(answer.headers.get('content-length') ?? Number.NaN)
          const before = bytes.n
          for (let chunk = await answer.next(); chunk; chunk = await answer.next()) {
            bytes.n += chunk.length
            if (bytes.n > bytesMax) throw driveErrors.tooLarge('the file', bytesMax)
            chunks.push(chunk)
          }
          if (Number.isFinite(expected) && bytes.n - before !== expected)
            throw driveErrors.cutShort('the file')
        },
        paced,
      ),
    )
  }

  async #json<T>(
    method: string,
    path: string,
    query: HttpCall['query'],
    schema: z.ZodType<T>,
    { signal }: CallOptions,
    headers?: HttpCall['headers'],
  ): Promise<T> {
    return await this.#paced(method, signal, (paced) =>
      this.#transport.send(
        { verb: 'GET', path: `${BASE}${path}`, query, ...(headers && { headers }) },
        async (answer) => {
          const body = await answer.jsonBytes(method, ANSWER_BYTES_MAX)
          return decode(schema, parseJson(body.toString('utf8'), method), method)
        },
        paced,
      ),
    )
  }

  #paced<T>(
    method: string,
    signal: AbortSignal | undefined,
    fn: (signal?: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const units = unitsOf(method)
    const call = signal ? { method, units, signal } : { method, units }
    return this.#options.pace(call, (paced) => fn(paced ?? signal))
  }
}

/** What Google charges since May 2026. */
const LIST_UNITS = 100
const DOWNLOAD_UNITS = 200
const READ_UNITS = 5

function unitsOf(method: string): number {
  if (method.endsWith('.list')) return LIST_UNITS
  return method === 'files.download' || method === 'files.export' ? DOWNLOAD_UNITS : READ_UNITS
}

const BASE = '/drive/v3'
export const FOLDER = 'application/vnd.google-apps.folder'
export const SHORTCUT = 'application/vnd.google-apps.shortcut'

/** A file that is known by its link only must be asked for with its key. */
function keyHeaders(id: string, resourceKey: string | undefined): Record<string, string> {
  return resourceKey === undefined ? {} : { 'x-goog-drive-resource-keys': `${id}/${resourceKey}` }
}

function quoted(name: string): string {
  return name.replaceAll('\\', '\\\\').replaceAll("'", "\\'")
}

function encodedId(id: string): string {
  if (!FILE_ID.test(id)) throw new UsageError('The id of a file holds characters that no id has.')
  return id
}
