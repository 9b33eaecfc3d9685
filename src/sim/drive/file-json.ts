/**
 * Items, users, permissions and drives as the API shows them. Each field is made on its own and only where it is asked
 * for: a page of a thousand names makes no thousand checksums.
 */

import { GoogleError } from '../google/errors.ts'
import { parseFields, type Selection } from '../google/fields.ts'
import { type Access, canShare, type Grant, grantsOn, roleOn } from './access.ts'
import { type Item, isAtLeast, isFolder, isNative, isTrashed, mimeTypes, roles, type User } from './item.ts'
import { exportFormats } from './native.ts'
import type { Seen } from './query.ts'
import type { DriveWorld } from './world.ts'

type Context = Seen & { world: DriveWorld; origin: string }
type Field = (context: Context) => unknown

const iso = (ms: number): string => new Date(ms).toISOString()

const binary =
  (read: (item: Item) => unknown): Field =>
  ({ item }) =>
    item.content && !isNative(item) ? read(item) : undefined

const inMyDrive =
  (read: Field): Field =>
  (context) =>
    context.item.driveId === undefined ? read(context) : undefined

const fileFields: Readonly<Record<string, Field>> = {
  kind: () => 'drive#file',
  id: ({ item }) => item.id,
  name: ({ item }) => item.name,
  mimeType: ({ item }) => item.mimeType,
  description: ({ item }) => item.description,
  starred: ({ item, user }) => item.starredBy.has(user.address),
  trashed: ({ item }) => isTrashed(item),
  explicitlyTrashed: ({ item }) => item.trashed !== undefined,
  trashedTime: ({ item }) =>
    item.trashed && item.driveId !== undefined ? iso(item.trashed.atMs) : undefined,
  trashingUser: ({ item, world, user }) =>
    item.trashed && item.driveId !== undefined ? userJson(world, item.trashed.by, user) : undefined,
  parents: ({ item, world, user }) => {
    const above = item.parent && world.access(user, item.parent)
    return above ? [item.parent!.id] : undefined
  },
  properties: ({ item }) => (Object.keys(item.properties).length > 0 ? item.properties : undefined),
  appProperties: () => undefined,
  spaces: () => ['drive'],
  version: ({ item }) => String(item.version),
  webContentLink: binary((item) => `https://drive.google.com/uc?id=${item.id}&export=download`),
  webViewLink: ({ item }) => viewLink(item),
  iconLink: ({ item }) => `https://drive-thirdparty.googleusercontent.com/16/type/${item.mimeType}`,
  hasThumbnail: () => false,
  thumbnailLink: () => undefined,
  thumbnailVersion: () => '0',
  viewedByMe: ({ item, user }) => item.openedBy.has(user.address),
  viewedByMeTime: ({ item, user }) => optionalTime(item.openedBy.get(user.address)),
  createdTime: ({ item }) => iso(item.createdMs),
  modifiedTime: ({ item }) => iso(item.modifiedMs),
  modifiedByMe: ({ item, user }) => item.modifiedBy === user.address,
  modifiedByMeTime: ({ item, user }) => (item.modifiedBy === user.address ? iso(item.modifiedMs) : undefined),
  sharedWithMeTime: inMyDrive(({ item, user }) => optionalTime(item.sharedAt.get(user.address)?.atMs)),
  sharingUser: inMyDrive(({ item, user, world }) => {
    const shared = item.sharedAt.get(user.address)
    return shared && userJson(world, shared.by, user)
  }),
  owners: inMyDrive(({ item, user, world }) => [userJson(world, item.owner ?? '', user)]),
  teamDriveId: ({ item }) => item.driveId,
  driveId: ({ item }) => item.driveId,
  lastModifyingUser: ({ item, user, world }) => userJson(world, item.modifiedBy, user),
  shared: ({ item }) =>
    item.driveId !== undefined || grantsOn(item).some(({ permission }) => permission.email !== item.owner),
  ownedByMe: inMyDrive(({ item, user }) => item.owner === user.address),
  capabilities: (context) => capabilities(context),
  viewersCanCopyContent: ({ item }) => !item.copyNeedsWriter,
  copyRequiresWriterPermission: ({ item }) => item.copyNeedsWriter,
  writersCanShare: inMyDrive(({ item }) => item.writersCanShare),
  permissions: inMyDrive(({ item, access, world }) =>
    canShare(item, access) ? permissionsJson(world, item) : undefined,
  ),
  permissionIds: ({ item, access, world }) =>
    canShare(item, access) ? permissionsJson(world, item).map(({ id }) => id) : undefined,
  hasAugmentedPermissions: ({ item }) => (item.driveId === undefined ? undefined : item.permissions.size > 0),
  folderColorRgb: ({ item }) => (isFolder(item) ? '#8f8f8f' : undefined),
  originalFilename: binary(({ name }) => name),
  fullFileExtension: binary(({ name }) => extensionOf(name)),
  fileExtension: binary(({ name }) => extensionOf(name)),
  md5Checksum: binary(({ content }) => content!.digests.md5),
  sha1Checksum: binary(({ content }) => content!.digests.sha1),
  sha256Checksum: binary(({ content }) => content!.digests.sha256),
  size: ({ item }) => (item.content ? String(item.content.digests.size) : undefined),
  quotaBytesUsed: ({ item }) => String(item.content?.digests.size ?? 0),
  headRevisionId: binary(({ id, revision }) => `0B${id.slice(1, 9)}${String(revision).padStart(8, '0')}`),
  isAppAuthorized: () => true,
  exportLinks: ({ item, origin }) => exportLinks(item, origin),
  shortcutDetails: ({ item }) => shortcutDetails(item),
  resourceKey: ({ item }) => item.resourceKey,
  linkShareMetadata: ({ item }) => ({
    securityUpdateEligible: item.resourceKey !== undefined,
    securityUpdateEnabled: item.resourceKey !== undefined,
  }),
  inheritedPermissionsDisabled: ({ item }) => (isFolder(item) ? item.isLimited : undefined),
  labelInfo: () => undefined,
  contentHints: () => undefined,
  contentRestrictions: () => undefined,
  downloadRestrictions: () => undefined,
  clientEncryptionDetails: () => undefined,
  imageMediaMetadata: () => undefined,
  videoMediaMetadata: () => undefined,
}

export const fileFieldNames: readonly string[] = Object.keys(fileFields)

/** What is shown where no fields are asked for. */
const FILE_DEFAULT = 'kind,id,name,mimeType'
const PERMISSION_DEFAULT = 'kind,id,type,role'
const defaults: Readonly<Record<string, string>> = {
  file: FILE_DEFAULT,
  files: `kind,incompleteSearch,nextPageToken,files(${FILE_DEFAULT})`,
  changes: `kind,nextPageToken,newStartPageToken,changes(kind,type,changeType,time,removed,fileId,driveId,teamDriveId,file(${FILE_DEFAULT},driveId,teamDriveId),drive(kind,id,name))`,
  permission: PERMISSION_DEFAULT,
  permissions: `kind,nextPageToken,permissions(${PERMISSION_DEFAULT})`,
  drive: 'kind,id,name',
  drives: 'kind,nextPageToken,drives(kind,id,name)',
}

export type Shape = keyof typeof envelopes

/** The fields around what is listed, and the field whose fields are those of files. */
const envelopes = {
  file: { own: Object.keys(fileFields), files: [] },
  files: { own: ['kind', 'incompleteSearch', 'nextPageToken', 'files'], files: ['files'] },
  changes: { own: ['kind', 'nextPageToken', 'newStartPageToken', 'changes'], files: ['changes', 'file'] },
  permission: { own: [], files: [] },
  permissions: { own: ['kind', 'nextPageToken', 'permissions'], files: [] },
  drive: { own: [], files: [] },
  drives: { own: ['kind', 'nextPageToken', 'drives'], files: [] },
  about: {
    own: [
      'kind',
      'user',
      'storageQuota',
      'importFormats',
      'exportFormats',
      'maxImportSizes',
      'maxUploadSize',
      'appInstalled',
      'folderColorPalette',
      'driveThemes',
      'teamDriveThemes',
      'canCreateDrives',
      'canCreateTeamDrives',
    ],
    files: [],
  },
  other: { own: [], files: [] },
} as const

/** What is asked for, checked against what there is. */
export function selectionOf(shape: Shape, text: string | null): Selection | undefined {
  const selection = parseFields(text === null || text === '' ? (defaults[shape] ?? null) : text)
  if (!selection || text === null) return selection
  const { own, files } = envelopes[shape]
  checkNames(selection, own)
  let at: Selection | true | undefined = selection
  for (const name of files) at = at === true || at === undefined ? at : at[name]
  if (files.length > 0 && at !== undefined && at !== true) checkNames(at, Object.keys(fileFields))
  return selection
}

function checkNames(selection: Selection, known: readonly string[]): void {
  if (known.length === 0) return
  const unknown = Object.keys(selection).find((name) => name !== '*' && !known.includes(name))
  if (unknown === undefined) return
  throw new GoogleError({
    status: 400,
    message: `Invalid field selection ${unknown}`,
    reason: 'invalidParameter',
    location: 'fields',
    locationType: 'parameter',
  })
}

/** The fields of the selection, the nested ones still whole. */
export function fileJson(context: Context, selection: Selection | true | undefined): Record<string, unknown> {
  const isAll = selection === undefined || selection === true || '*' in selection
  const names = isAll ? Object.keys(fileFields) : Object.keys(selection)
  const json: Record<string, unknown> = {}
  for (const name of names) {
    const value = Object.hasOwn(fileFields, name) ? fileFields[name]!(context) : undefined
    if (value !== undefined) json[name] = value
  }
  return json
}

export function userJson(world: DriveWorld, address: string, me?: User): Record<string, unknown> {
  const user = world.users.get(address)
  return {
    kind: 'drive#user',
    displayName: user?.name ?? address,
    me: me?.address === address,
    ...(user ? { permissionId: user.permissionId } : {}),
    emailAddress: address,
  }
}

export type PermissionJson = { id: string } & Record<string, unknown>

/** One for each grantee, with the highest role and where each comes from. */
export function permissionsJson(world: DriveWorld, item: Item): PermissionJson[] {
  const byGrantee = new Map<string, Grant[]>()
  for (const grant of grantsOn(item)) {
    const { id } = grant.permission
    byGrantee.set(id, [...(byGrantee.get(id) ?? []), grant])
  }
  const permissions = [...byGrantee.values()].map((grants) => permissionJson(world, item, grants))
  return item.isLimited && item.parent
    ? [...permissions, ...metadataViews(world, item, byGrantee)]
    : permissions
}

/** Who sees only the name of a limited-access folder. */
function metadataViews(world: DriveWorld, item: Item, known: ReadonlyMap<string, unknown>): PermissionJson[] {
  const above = permissionsJson(world, item.parent!).filter(
    ({ id, view }) => !known.has(id) && view === undefined,
  )
  return above.map((permission) => ({ ...permission, role: 'reader', view: 'metadata' }))
}

export function permissionJson(world: DriveWorld, item: Item, grants: readonly Grant[]): PermissionJson {
  const { permission } = grants[0]!
  const { id, type, email, domain, isDiscoverable, expiresMs } = permission
  const role = grants
    .map((grant) => roleOn(item, grant))
    .sort((a, b) => roles.indexOf(b) - roles.indexOf(a))[0]!
  const name =
    type === 'domain'
      ? domain
      : (world.users.get(email ?? '')?.name ?? world.groups.get(email ?? '')?.name ?? email)
  const details = grants.map((grant) => ({
    permissionType: grant.on.isRoot && item.driveId !== undefined ? 'member' : 'file',
    role: roleOn(item, grant),
    inherited: grant.on !== item,
    ...(grant.on === item ? {} : { inheritedFrom: grant.on.id }),
  }))
  return {
    kind: 'drive#permission',
    id,
    type,
    role,
    ...(type === 'anyone' ? {} : { displayName: name }),
    ...(email === undefined ? {} : { emailAddress: email, deleted: false, pendingOwner: false }),
    ...(domain === undefined ? {} : { domain }),
    ...(isDiscoverable === undefined ? {} : { allowFileDiscovery: isDiscoverable }),
    ...(expiresMs === undefined ? {} : { expirationTime: iso(expiresMs) }),
    ...(item.isLimited ? { inheritedPermissionsDisabled: true } : {}),
    permissionDetails: details,
    ...(item.driveId === undefined ? {} : { teamDrivePermissionDetails: details }),
  }
}

export function driveJson(root: Item, access: Access): Record<string, unknown> {
  const can = (least: (typeof roles)[number]): boolean => isAtLeast(access.role, least)
  return {
    kind: 'drive#drive',
    id: root.id,
    name: root.name,
    colorRgb: '#0f9d58',
    createdTime: iso(root.createdMs),
    hidden: false,
    capabilities: {
      canAddChildren: can('writer'),
      canComment: can('commenter'),
      canCopy: true,
      canDeleteDrive: can('organizer'),
      canDownload: true,
      canEdit: can('writer'),
      canListChildren: true,
      canManageMembers: can('organizer'),
      canReadRevisions: true,
      canRename: can('fileOrganizer'),
      canRenameDrive: can('organizer'),
      canShare: can('organizer'),
      canTrashChildren: can('fileOrganizer'),
    },
    restrictions: {
      adminManagedRestrictions: false,
      copyRequiresWriterPermission: false,
      domainUsersOnly: false,
      driveMembersOnly: false,
    },
  }
}

function capabilities({ item, access }: Context): Record<string, boolean> {
  const { role, isMetadataOnly } = access
  const can = (least: (typeof roles)[number]): boolean => !isMetadataOnly && isAtLeast(role, least)
  const isMine = item.driveId === undefined
  return {
    canAddChildren: isFolder(item) && can('writer'),
    canChangeCopyRequiresWriterPermission: can('writer'),
    canComment: can('commenter'),
    canCopy: !isFolder(item) && can(item.copyNeedsWriter ? 'writer' : 'reader'),
    canDelete: isMine ? role === 'owner' : can('organizer'),
    canDisableInheritedPermissions: isFolder(item) && !item.isLimited && canLimit(item, access),
    canDownload: !isFolder(item) && can(item.copyNeedsWriter ? 'writer' : 'reader'),
    canEdit: can('writer'),
    canEnableInheritedPermissions: isFolder(item) && item.isLimited && canLimit(item, access),
    canListChildren: isFolder(item) && !isMetadataOnly,
    canModifyContent: can('writer'),
    canReadRevisions: !isFolder(item) && can('writer'),
    canRemoveChildren: isFolder(item) && can('writer'),
    canRename: can('writer'),
    canShare: canShare(item, access),
    canTrash: canTrash(item, access),
    canUntrash: canTrash(item, access),
  }
}

export function canTrash({ driveId }: Item, { role, isMetadataOnly }: Access): boolean {
  if (isMetadataOnly) return false
  return driveId === undefined ? role === 'owner' : isAtLeast(role, 'fileOrganizer')
}

export function canLimit({ driveId }: Item, { role }: Access): boolean {
  return driveId === undefined ? isAtLeast(role, 'writer') : role === 'organizer'
}

function optionalTime(ms: number | undefined): string | undefined {
  return ms === undefined ? undefined : iso(ms)
}

function extensionOf(name: string): string | undefined {
  const dot = name.lastIndexOf('.')
  return dot > 0 ? name.slice(dot + 1) : ''
}

const VIEWERS: Readonly<Record<string, string>> = {
  [mimeTypes.document]: 'https://docs.google.com/document/d/ID/edit',
  [mimeTypes.spreadsheet]: 'https://docs.google.com/spreadsheets/d/ID/edit',
  [mimeTypes.presentation]: 'https://docs.google.com/presentation/d/ID/edit',
  [mimeTypes.folder]: 'https://drive.google.com/drive/folders/ID',
}

function viewLink({ id, mimeType }: Item): string {
  return (VIEWERS[mimeType] ?? 'https://drive.google.com/file/d/ID/view?usp=drivesdk').replace('ID', id)
}

function exportLinks(item: Item, origin: string): Record<string, string> | undefined {
  const formats = isNative(item) ? exportFormats(item.mimeType) : []
  if (formats.length === 0) return undefined
  const link = (to: string): string =>
    `${origin}/drive/v3/files/${item.id}/export?mimeType=${encodeURIComponent(to)}`
  return Object.fromEntries(formats.map((to) => [to, link(to)]))
}

function shortcutDetails({ target }: Item): Record<string, string> | undefined {
  if (!target) return undefined
  return {
    targetId: target.id,
    targetMimeType: target.mimeType,
    ...(target.resourceKey === undefined ? {} : { targetResourceKey: target.resourceKey }),
  }
}
