/** How the simulated Drive describes itself to programs: by the routes that it has. */
import type { Described, Fields, ServiceDocument } from '../google/discovery.ts'
import { fileFieldNames } from './file-json.ts'
import type { Route, RouteTable } from './route.ts'
import { scopesFor } from './scopes.ts'

/** What a route sends, and takes where it writes; the others send nothing, or bytes. */
const RESPONSES: Readonly<Record<string, string>> = {
  'files.list': 'FileList',
  'files.get': 'File',
  'files.create': 'File',
  'files.copy': 'File',
  'files.update': 'File',
  'files.generateIds': 'GeneratedIds',
  'permissions.list': 'PermissionList',
  'permissions.get': 'Permission',
  'permissions.create': 'Permission',
  'permissions.update': 'Permission',
  'changes.list': 'ChangeList',
  'changes.getStartPageToken': 'StartPageToken',
  'drives.list': 'DriveList',
  'drives.get': 'Drive',
  'drives.create': 'Drive',
  'drives.update': 'Drive',
  'about.get': 'About',
}

const LISTS: Readonly<Record<string, string>> = {
  parents: '[]',
  spaces: '[]',
  permissionIds: '[]',
  owners: ':User[]',
  permissions: ':Permission[]',
}
const USERS = ['trashingUser', 'sharingUser', 'lastModifyingUser']
const OBJECTS = ['properties', 'appProperties', 'capabilities', 'exportLinks', 'shortcutDetails', 'labelInfo']
const BOOLEANS =
  /^(?:acknowledge|include(?!Labels|PermissionsForView)|supports|ignore|keep|use|enforce|move|send|transfer|remove(?!Parents)|allow|restrict|starred|trashed|explicitly|has|viewedByMe$|modifiedByMe$|shared$|ownedByMe|viewersCan|copyRequires|writersCan|isApp|inherited)/

const SCHEMAS: Readonly<Record<string, Fields>> = {
  File: fileFieldNames.map(typed).join(' '),
  FileList: 'kind nextPageToken incompleteSearch? files:File[]',
  GeneratedIds: 'kind space ids[]',
  Permission: 'kind id type role emailAddress domain displayName allowFileDiscovery? expirationTime deleted?',
  PermissionList: 'kind nextPageToken permissions:Permission[]',
  Change: 'kind type changeType time removed? fileId file:File driveId drive:Drive',
  ChangeList: 'kind nextPageToken newStartPageToken changes:Change[]',
  StartPageToken: 'kind startPageToken',
  Drive: 'kind id name createdTime hidden?',
  DriveList: 'kind nextPageToken drives:Drive[]',
  User: 'kind displayName emailAddress permissionId photoLink me?',
  StorageQuota: 'limit usage usageInDrive usageInDriveTrash',
  About: 'kind user:User storageQuota:StorageQuota maxUploadSize canCreateDrives? appInstalled?',
  Anything: '',
}

export function driveDocument(routes: RouteTable): ServiceDocument {
  const served = Object.entries(routes).filter(
    ([key, { name }]) => !key.startsWith('MEDIA ') && name !== 'files.upload',
  )
  return {
    name: 'drive',
    version: 'v3',
    title: 'Google Drive API, simulated',
    servicePath: 'drive/v3/',
    methods: served.map(([key, route]) => described(key, route)),
    schemas: SCHEMAS,
  }
}

function described(key: string, route: Route): Described {
  const [verb = '', pattern = ''] = key.split(' ')
  const { name } = route
  const path = pattern
    .replace('drives/*', 'drives/{driveId}')
    .replace('files/*', 'files/{fileId}')
    .replace('permissions/*', 'permissions/{permissionId}')
  const response = RESPONSES[name]
  const takesBytes = name === 'files.create' || name === 'files.update'
  return {
    id: name,
    verb,
    path,
    query: route.parameters.map(typed).join(' '),
    request: verb === 'POST' || verb === 'PATCH' ? response : undefined,
    response,
    scopes: scopesFor(route.need),
    sendsMedia: name === 'files.get' || name === 'files.export',
    uploadPath: takesBytes ? `/upload/drive/v3/${path}` : undefined,
  }
}

function typed(name: string): string {
  if (LISTS[name] !== undefined) return name + LISTS[name]
  if (USERS.includes(name)) return `${name}:User`
  if (OBJECTS.includes(name)) return `${name}:Anything`
  if (name === 'pageSize' || name === 'count') return `${name}#`
  return BOOLEANS.test(name) ? `${name}?` : name
}
