/**
 * OneDrive as the rest of Tidemark sees it: typed calls of Microsoft Graph that are paced and classified. Holds no
 * state of its own; what it needs of the world is passed in.
 *
 * - every call goes through `pace`, and bytes of transfers through `spendBytes`
 * - every failure is a TidemarkError, except the reason of an aborted signal, which is passed on as it is
 * - nothing is retried but what only looks like a failure: a token that ended, an address that is too fresh, and,
 *   where the caller asks for it, something that was just made and is not found yet
 */
import type { Clock } from '../../base/clock.ts'
import { UsageError } from '../../base/errors.ts'
import type { HttpExchange } from '../../base/http-exchange.ts'
import type { Pace } from '../pace.ts'
import type { TokenSource } from '../token-source.ts'
import {
  type CallOptions,
  Calls,
  drivePath,
  fileTimes,
  itemPath,
  jsonBody,
  matchHeader,
  type SpendBytes,
  segment,
  type Target,
  targetPath,
} from './calls.ts'
import { type Download, type DownloadOptions, download } from './download.ts'
import { trueNames } from './encoded-names.ts'
import { answers } from './errors.ts'
import {
  copySchema,
  type Drive,
  type DriveItem,
  deltaPageSchema,
  driveSchema,
  drivesSchema,
  evenDriveId,
  itemPageSchema,
  itemSchema,
  type Person,
  permissionsSchema,
  personSchema,
  type SharedItem,
  type Site,
  sharedItemSchema,
  sitesSchema,
  subscriptionSchema,
} from './schema.ts'
import { type Call, Transport } from './transport.ts'
import {
  cancelUpload,
  createUploadSession,
  type Fragment,
  type FragmentAnswer,
  type PutOptions,
  putContent,
  type SessionOptions,
  type UploadProgress,
  type UploadSession,
  uploadFragment,
  uploadStatus,
} from './upload.ts'

export type { CallOptions, SpendBytes, Target } from './calls.ts'
export type { Download } from './download.ts'
export type { Drive, DriveItem, DriveItemType, Person, SharedItem, Site } from './schema.ts'
export type { Fragment, FragmentAnswer, UploadProgress, UploadSession } from './upload.ts'
export { FRAGMENT_BYTES_MAX, FRAGMENT_STEP_BYTES, PUT_BYTES_MAX } from './upload.ts'

export type OneDriveClientOptions = {
  /** `createHttpExchange()` of src/base/http-exchange.ts. */
  exchange: HttpExchange
  clock: Clock
  /** `https://graph.microsoft.com/v1.0` */
  apiUrl: string
  token: TokenSource
  pace: Pace
  /** Awaited before the bytes are passed on. */
  spendBytes?: SpendBytes | undefined
  /** Silence of the connection, not the length of the call. */
  timeoutMs?: number | undefined
}

export type DeltaPage = {
  /** In their order: the last occurrence of an item counts. */
  items: DriveItem[]
  nextLink: string | undefined
  /** Only on the last page: where to go on from next time. */
  deltaLink: string | undefined
}

export type MatchOptions = CallOptions & { ifMatch?: string | undefined }

export type CopyState = { state: 'running' | 'done' | 'failed'; percent: number; itemId: string | undefined }

export type Subscription = { id: string; expiresAtMs: number | undefined }

const TIMEOUT_MS = 60_000
const CHILDREN_PAGE_SIZE = 200
const PAGES_MAX = 100_000
/** What was just made is looked for this often when its answer said nothing. */
const MADE_TRIES = 4

export class OneDriveClient {
  readonly #calls: Calls
  readonly #transport: Transport

  constructor(options: OneDriveClientOptions) {
    if (!/^https?:$/.test(URL.parse(options.apiUrl)?.protocol ?? '')) {
      throw new UsageError('The address of Microsoft Graph is no web address.')
    }
    this.#transport = new Transport({ ...options, timeoutMs: options.timeoutMs ?? TIMEOUT_MS })
    this.#calls = new Calls({ ...options, transport: this.#transport })
  }

  me(options: CallOptions = {}): Promise<Person> {
    return this.#calls.json('me', get('/me'), { schema: personSchema, what: 'the account' }, options)
  }

  /** The account's own drive. */
  drive(options: CallOptions = {}): Promise<Drive> {
    return this.#calls.json(
      'drive.get',
      get('/me/drive'),
      { schema: driveSchema, what: 'the drive' },
      options,
    )
  }

  /** The account's own. */
  drives(options: CallOptions = {}): Promise<Drive[]> {
    return this.#drivesAt('/me/drives', options)
  }

  /** The sites of SharePoint that the person follows. */
  async sites(options: CallOptions = {}): Promise<Site[]> {
    const sites: Site[] = []
    let path: string | undefined = '/me/followedSites'
    for (let pages = 0; path !== undefined && pages < PAGES_MAX; pages++) {
      const read = { schema: sitesSchema, what: 'the sites' }
      const page: { sites: Site[]; nextLink?: string | undefined } = await this.#calls.json(
        'sites.list',
        get(path),
        read,
        options,
      )
      sites.push(...page.sites)
      path = page.nextLink === undefined ? undefined : this.#transport.pathOfLink(page.nextLink)
    }
    return sites
  }

  /** The libraries of a site. */
  libraries(siteId: string, options: CallOptions = {}): Promise<Drive[]> {
    return this.#drivesAt(`/sites/${encodeURIComponent(siteId)}/drives`, options)
  }

  async #drivesAt(from: string, options: CallOptions): Promise<Drive[]> {
    const drives: Drive[] = []
    let path: string | undefined = from
    for (let pages = 0; path !== undefined && pages < PAGES_MAX; pages++) {
      const read = { schema: drivesSchema, what: 'the drives' }
      const page: { drives: Drive[]; nextLink?: string | undefined } = await this.#calls.json(
        'drives.list',
        get(path),
        read,
        options,
      )
      drives.push(...page.drives)
      path = page.nextLink === undefined ? undefined : this.#transport.pathOfLink(page.nextLink)
    }
    return drives
  }

  driveById(driveId: string, options: CallOptions = {}): Promise<Drive> {
    const read = { schema: driveSchema, what: 'the drive' }
    return this.#calls.json('drive.get', get(drivePath(driveId)), read, options)
  }

  /** What others share with the account. Microsoft announces that it will give nothing: see also `shortcuts`. */
  async sharedWithMe(options: CallOptions = {}): Promise<SharedItem[]> {
    const found = await this.#pages('/me/drive/sharedWithMe', 'shared.list', {}, options)
    return found.flatMap(({ target }) => target ?? [])
  }

  /** Of folders of others that the person has added at the top of the own drive. */
  async shortcuts(options: CallOptions = {}): Promise<SharedItem[]> {
    const path = `/me/drive/root/children?$top=${CHILDREN_PAGE_SIZE}`
    // Newer personal drives leave them out otherwise.
    const headers = { prefer: 'Include-Feature=AddToOneDrive' }
    const found = await this.#pages(path, 'children.list', headers, options)
    return found.flatMap(({ target }) => target ?? [])
  }

  /** What a sharing link leads to. With `redeem` the account may come to it by its ids from now on, for good. */
  linkedItem(link: string, options: CallOptions & { redeem?: boolean } = {}): Promise<SharedItem> {
    const path = `/shares/u!${Buffer.from(link).toString('base64url')}/driveItem`
    const prefer = options.redeem ? 'redeemSharingLink' : 'redeemSharingLinkIfNecessary'
    const call: Call = { ...get(path), headers: { prefer } }
    return this.#calls.json('shares.get', call, { schema: sharedItemSchema, what: 'the item' }, options)
  }

  /** Something in the drive of somebody else, and whose it is. */
  sharedItem(driveId: string, itemId: string, options: CallOptions = {}): Promise<SharedItem> {
    const read = { schema: sharedItemSchema, what: 'the item' }
    return this.#calls.json('item.get', get(itemPath(driveId, itemId)), read, options)
  }

  /** What the account may do with it, as far as that is told: `read`, `write`, `owner`. */
  permissions(driveId: string, itemId: string, options: CallOptions = {}): Promise<string[]> {
    const read = { schema: permissionsSchema, what: 'the permissions' }
    return this.#calls.json(
      'permissions.list',
      get(`${itemPath(driveId, itemId)}/permissions`),
      read,
      options,
    )
  }

  async #pages(
    from: string,
    method: string,
    headers: Record<string, string>,
    options: CallOptions,
  ): Promise<DriveItem[]> {
    const items: DriveItem[] = []
    let path: string | undefined = from
    for (let pages = 0; path !== undefined && pages < PAGES_MAX; pages++) {
      const read = { schema: itemPageSchema, what: 'what is shared' }
      const page: { items: DriveItem[]; nextLink?: string | undefined } = await this.#calls.json(
        method,
        { ...get(path), headers },
        read,
        options,
      )
      items.push(...page.items)
      path = page.nextLink === undefined ? undefined : this.#transport.pathOfLink(page.nextLink)
    }
    return items
  }

  root(driveId: string, options: CallOptions = {}): Promise<DriveItem> {
    return this.#item('item.get', driveId, get(`${drivePath(driveId)}/root`), options)
  }

  item(driveId: string, itemId: string, options: CallOptions = {}): Promise<DriveItem> {
    return this.#item('item.get', driveId, get(itemPath(driveId, itemId)), options)
  }

  /** `path` from the drive's root, or from `folderId`, with `/` between its names; that itself where it is empty. */
  itemByPath(
    driveId: string,
    path: string,
    options: CallOptions & { folderId?: string | undefined } = {},
  ): Promise<DriveItem> {
    const names = path.split('/').filter((name) => name !== '')
    const below = names.length === 0 ? '' : `:/${names.map(segment).join('/')}`
    return this.#item('item.get', driveId, get(`${topPath(driveId, options.folderId)}${below}`), options)
  }

  /** Something in a folder, by its name. */
  childByName(
    driveId: string,
    child: { parentId: string; name: string },
    options: CallOptions = {},
  ): Promise<DriveItem> {
    return this.#item('item.get', driveId, get(targetPath(driveId, child)), options)
  }

  async *children(
    driveId: string,
    itemId: string,
    options: CallOptions & { pageSize?: number } = {},
  ): AsyncGenerator<DriveItem, void, undefined> {
    const { pageSize = CHILDREN_PAGE_SIZE } = options
    let path = `${itemPath(driveId, itemId)}/children?$top=${pageSize}`
    for (let pages = 0; pages < PAGES_MAX; pages++) {
      const read = { schema: itemPageSchema, what: 'a page of children' }
      const page = await this.#calls.json('children.list', get(path), read, options)
      yield* await this.#even(driveId, page.items, options)
      if (page.nextLink === undefined) return
      path = this.#transport.pathOfLink(page.nextLink)
    }
    // Who asks concludes from the end that this was all.
    throw answers.damagedAnswer('the children of a folder', 'they have no end')
  }

  /**
   * One page of what changed, from a `link` of before, or of everything. With `latest` it is an empty page whose
   * deltaLink means now. Fails with the code `resync` (see ResyncError) where OneDrive cannot say it any more. Of
   * `folderId` and what is in it alone, where it is given; fails with `not-supported` where the drive has that not.
   */
  async delta(
    driveId: string,
    options: CallOptions & {
      folderId?: string | undefined
      link?: string | undefined
      latest?: boolean
      pageSize?: number
    } = {},
  ): Promise<DeltaPage> {
    const { folderId, link, latest, pageSize } = options
    const query = latest ? '?token=latest' : pageSize === undefined ? '' : `?$top=${pageSize}`
    const path =
      link === undefined ? `${topPath(driveId, folderId)}/delta${query}` : this.#transport.pathOfLink(link)
    const read = { schema: deltaPageSchema, what: 'the changes' }
    const { items, nextLink, deltaLink } = await this.#calls.json('delta', get(path), read, options)
    return { items: await this.#even(driveId, items, options), nextLink, deltaLink }
  }

  /** Fails with the code `exists` where there is something of that name and `conflict` is `fail`. */
  async createFolder(
    driveId: string,
    folder: { parentId: string; name: string; conflict: 'fail' | 'rename' },
    options: CallOptions = {},
  ): Promise<DriveItem> {
    const { parentId, name, conflict } = folder
    segment(name)
    const call = post(`${itemPath(driveId, parentId)}/children`, {
      name,
      folder: {},
      '@microsoft.graph.conflictBehavior': conflict,
    })
    const read = { schema: itemSchema.optional(), what: 'the new folder', whenEmpty: () => undefined }
    const made = await this.#calls.json('folder.create', call, read, options)
    if (made) return this.#of(driveId, made)
    // Success without a word. Under its name it is found, unless OneDrive has chosen another one.
    if (conflict === 'rename') throw answers.cutShort('the new folder')
    return await this.childByName(driveId, { parentId, name }, { missingTries: MADE_TRIES, ...options })
  }

  /** For small files. Cannot set the time of the file: see `update`. */
  async putContent(
    driveId: string,
    target: Target,
    body: Uint8Array,
    options: PutOptions = {},
  ): Promise<DriveItem> {
    return this.#of(driveId, await putContent(this.#calls, driveId, target, body, options))
  }

  createUploadSession(driveId: string, target: Target, options: SessionOptions): Promise<UploadSession> {
    return createUploadSession(this.#calls, driveId, target, options)
  }

  /** Gives the item with the last fragment. Fails with the codes `range` (ask uploadStatus) and `session-gone`. */
  uploadFragment(url: string, fragment: Fragment): Promise<FragmentAnswer> {
    return uploadFragment(this.#calls, url, fragment)
  }

  uploadStatus(url: string, options: CallOptions = {}): Promise<UploadProgress> {
    return uploadStatus(this.#calls, url, options)
  }

  cancelUpload(url: string, options: CallOptions = {}): Promise<void> {
    return cancelUpload(this.#calls, url, options)
  }

  download(driveId: string, itemId: string, options: DownloadOptions = {}): Promise<Download> {
    return download(this.#calls, driveId, itemId, options)
  }

  /** Renames, moves within the drive, or sets the time of the file. */
  update(
    driveId: string,
    itemId: string,
    change: { name?: string | undefined; parentId?: string | undefined; modifiedMs?: number | undefined },
    options: MatchOptions = {},
  ): Promise<DriveItem> {
    const { name, parentId, modifiedMs } = change
    if (name !== undefined) segment(name)
    const { body, headers } = jsonBody({
      ...(name !== undefined && { name }),
      ...(parentId !== undefined && { parentReference: { id: parentId } }),
      ...(modifiedMs !== undefined && { fileSystemInfo: fileTimes(modifiedMs) }),
    })
    const call: Call = { verb: 'PATCH', path: itemPath(driveId, itemId), ...(body !== undefined && { body }) }
    call.headers = { ...headers, ...matchHeader(options.ifMatch) }
    return this.#item('item.update', driveId, call, options)
  }

  /** To the recycle bin, with all that is in it. */
  async remove(driveId: string, itemId: string, options: MatchOptions = {}): Promise<void> {
    const headers = matchHeader(options.ifMatch)
    await this.#calls.done(
      'item.delete',
      { verb: 'DELETE', path: itemPath(driveId, itemId), headers },
      options,
    )
  }

  /** Out of the recycle bin, to where it was unless said otherwise. */
  restore(
    driveId: string,
    itemId: string,
    where: { parentId?: string; name?: string } = {},
    options: CallOptions = {},
  ): Promise<DriveItem> {
    const { parentId, name } = where
    const call = post(`${itemPath(driveId, itemId)}/restore`, {
      ...(parentId !== undefined && { parentReference: { id: parentId } }),
      ...(name !== undefined && { name }),
    })
    return this.#item('item.restore', driveId, call, options)
  }

  /** Begins a copy, also to another drive; `copyState` of the address tells how far it is. */
  async copy(
    driveId: string,
    itemId: string,
    to: { driveId: string; parentId: string; name?: string },
    options: CallOptions = {},
  ): Promise<{ monitorUrl: string }> {
    const call = post(`${itemPath(driveId, itemId)}/copy`, {
      parentReference: { driveId: to.driveId, id: to.parentId },
      ...(to.name !== undefined && { name: to.name }),
    })
    const answer = await this.#calls.done('item.copy', call, options)
    return { monitorUrl: this.#transport.transferUrl(answer.headers.get('location') ?? '', 'The copy') }
  }

  async copyState(monitorUrl: string, options: CallOptions = {}): Promise<CopyState> {
    return await this.#calls.paced('copy.get', options, async (signal) => {
      const call = { verb: 'GET' as const, url: monitorUrl, asked: 'download' as const }
      const answer = await this.#transport.openAddress(call, signal)
      const { state, percent, itemId } = await answer.json(copySchema, 'the copy')
      return { state, percent, itemId }
    })
  }

  /** Asks for notifications about changes in a drive. */
  createSubscription(
    driveId: string,
    wanted: { notificationUrl: string; expiresAtMs: number; clientState?: string },
    options: CallOptions = {},
  ): Promise<Subscription> {
    const { notificationUrl, expiresAtMs, clientState } = wanted
    const call = post('/subscriptions', {
      changeType: 'updated',
      resource: `${drivePath(driveId)}/root`,
      notificationUrl,
      expirationDateTime: new Date(expiresAtMs).toISOString(),
      ...(clientState !== undefined && { clientState }),
    })
    const read = { schema: subscriptionSchema, what: 'the notifications' }
    return this.#calls.json('subscription.create', call, read, options)
  }

  renewSubscription(
    subscriptionId: string,
    { expiresAtMs }: { expiresAtMs: number },
    options: CallOptions = {},
  ): Promise<Subscription> {
    const body = { expirationDateTime: new Date(expiresAtMs).toISOString() }
    const call: Call = { verb: 'PATCH', path: subscriptionPath(subscriptionId), ...jsonBody(body) }
    const read = { schema: subscriptionSchema, what: 'the notifications' }
    return this.#calls.json('subscription.renew', call, read, options)
  }

  async removeSubscription(subscriptionId: string, options: CallOptions = {}): Promise<void> {
    const call: Call = { verb: 'DELETE', path: subscriptionPath(subscriptionId) }
    await this.#calls.done('subscription.delete', call, options)
  }

  async #item(method: string, driveId: string, call: Call, options: CallOptions): Promise<DriveItem> {
    const item = await this.#calls.json(method, call, { schema: itemSchema, what: 'the item' }, options)
    return this.#of(driveId, item)
  }

  /** Items of a listing, which know their drive and have their true names. */
  async #even(driveId: string, items: DriveItem[], options: CallOptions): Promise<DriveItem[]> {
    const known = items.map((item) => this.#of(driveId, item))
    // What was just made may not be found for a moment.
    const look = { signal: options.signal, missingTries: MADE_TRIES }
    return await trueNames(known, ({ id }) => this.item(driveId, id, look))
  }

  #of(driveId: string, item: DriveItem): DriveItem {
    if (item.driveId === '') item.driveId = evenDriveId(driveId)
    return item
  }
}

/** Where a path or a delta begins. */
function topPath(driveId: string, folderId: string | undefined): string {
  return folderId === undefined ? `${drivePath(driveId)}/root` : itemPath(driveId, folderId)
}

function get(path: string): Call {
  return { verb: 'GET', path }
}

function post(path: string, body: unknown): Call {
  return { verb: 'POST', path, ...jsonBody(body) }
}

function subscriptionPath(id: string): string {
  return `/subscriptions/${encodeURIComponent(id)}`
}
