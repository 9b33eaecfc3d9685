/**
 * What an address under /v1.0 means: whose drive, which item, and what is wanted of it. An item is named by id
 * (`/items/ID`), by path (`/root:/a/b:/children`), or by a path below an id (`/items/ID:/name:/content`).
 */

export type GraphAddress = {
  /** Undefined: the drive of whoever calls. */
  driveId: string | undefined
  /** Undefined: the drive itself. */
  item: ItemAddress | undefined
  /** What follows the item: `children`, `content`, `delta`, or nothing; a star for what `argument` names. */
  action: string
  /** What stands in brackets behind the action, `delta(token='…')`, or is named below it, `versions/ID`. */
  argument: string | undefined
}

export type ItemAddress = {
  /** `root`, an id, or the name of a special folder. */
  start: { kind: 'root' } | { kind: 'id'; id: string } | { kind: 'special'; name: string }
  /** Decoded names from there. */
  path: readonly string[]
  isByPath: boolean
}

const DRIVE = /^\/(?:me\/drive|users\/[^/]+\/drive|(?:me\/)?drives\/([^/]+))(?=$|\/)/
const ITEM = /^\/(?:root|items\/([^/:]+)|special\/([^/:]+))(?=$|[/:])/

/** Undefined where the path is no address in a drive; `wrong` where it is one that cannot be read. */
export function parseAddress(path: string): GraphAddress | 'wrong' | undefined {
  const drive = DRIVE.exec(path)
  if (!drive) return undefined
  const driveId = drive[1] === undefined ? undefined : decoded(drive[1])
  if (driveId === null) return 'wrong'
  const rest = path.slice(drive[0].length)
  const item = ITEM.exec(rest)
  if (!item) return { driveId, item: undefined, ...actionOf(rest.replace(/^\//, '')) }
  const [whole, id, special] = item
  const decodedId = decoded(id ?? special ?? '')
  if (decodedId === null) return 'wrong'
  const start =
    id !== undefined
      ? ({ kind: 'id', id: decodedId } as const)
      : special !== undefined
        ? ({ kind: 'special', name: decodedId } as const)
        : ({ kind: 'root' } as const)
  const after = rest.slice(whole.length)
  if (!after.startsWith(':')) {
    return { driveId, item: { start, path: [], isByPath: false }, ...actionOf(after.replace(/^\//, '')) }
  }
  const end = after.indexOf(':', 1)
  const names = decodedNames(end < 0 ? after.slice(1) : after.slice(1, end))
  if (!names) return 'wrong'
  const action = end < 0 ? '' : after.slice(end + 1).replace(/^\//, '')
  return { driveId, item: { start, path: names, isByPath: true }, ...actionOf(action) }
}

/** `/drive/root:/a/b` or `/drives/ID/root:/a/b`, as a parentReference may say it. */
export function parseReferencePath(path: string): readonly string[] | undefined {
  const match = /^(?:\/drives?(?:\/[^/]+)?)?\/root:?(\/.*)?$/.exec(path)
  return match ? decodedNames(match[1] ?? '') : undefined
}

// `versions/1.0/content` is `versions/*/content` of `1.0`, and `search(q='it''s')` is `search` of `it's`.
function actionOf(text: string): { action: string; argument: string | undefined } {
  const plain = decoded(text) ?? text
  const call = /^([^(/]*)\((?:\w+=)?(?:'((?:[^']|'')*)'|([^')]*))\)$/.exec(plain)
  if (call) {
    const argument = call[2]?.replaceAll("''", "'") ?? call[3]
    return { action: withoutNamespace(call[1]!), argument: argument === '' ? undefined : argument }
  }
  const [first = '', argument, ...rest] = plain.split('/')
  const action = argument === undefined ? first : [first, '*', ...rest].join('/')
  return { action: withoutNamespace(action), argument }
}

function withoutNamespace(action: string): string {
  return action.replace(/^microsoft\.graph\./, '')
}

function decodedNames(path: string): string[] | undefined {
  // Decoded first: the service takes %2F for a separator like any other, and a dot for where it is already.
  return decoded(path)
    ?.split('/')
    .filter((name) => name !== '' && name !== '.')
}

function decoded(text: string): string | null {
  if (!text.includes('%')) return text
  try {
    return decodeURIComponent(text)
  } catch {
    // A percent sign that begins nothing.
    return null
  }
}
