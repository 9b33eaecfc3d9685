/** What calls of the Drive API cost since May 2026: 5 to read, 100 to list, 200 to download, 50 to change. */
export const UNITS_PER_MINUTE = 325_000

const CHANGE = 50
const LIST = 100
const DOWNLOAD = 200

export const drivePrices: Readonly<Record<string, number>> = {
  'files.list': LIST,
  'changes.list': LIST,
  'drives.list': LIST,
  'permissions.list': LIST,
  'files.media': DOWNLOAD,
  'files.export': DOWNLOAD,
  'files.create': CHANGE,
  'files.copy': CHANGE,
  'files.update': CHANGE,
  'files.delete': CHANGE,
  'files.emptyTrash': CHANGE,
  'drives.create': CHANGE,
  'drives.update': CHANGE,
  'drives.delete': CHANGE,
  'permissions.create': CHANGE,
  'permissions.update': CHANGE,
  'permissions.delete': CHANGE,
  '*': 5,
}
