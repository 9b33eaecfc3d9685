/**
 * Where the dashboard may add a folder. A path that comes over the network is a wish of whoever reaches the server:
 * on a server for this machine alone it may lie in the user's own home, and beyond that, or on a server that others
 * reach, only where the configuration says so.
 *
 * Some places take a person at the command line, whatever the configuration says, because what is synced there can be
 * read, and changed, by whoever holds the account: folders of the home whose names begin with a dot (keys, mail,
 * start-up files), what is of Tidemark itself, what is of the system, and every folder that holds one of these.
 */
import { readdirSync, realpathSync } from 'node:fs'
import { homedir } from 'node:os'
import { basename, dirname, isAbsolute, join, resolve, sep } from 'node:path'
import { ProblemError } from '../../../app/problem.ts'
import { exposedAs } from '../../../base/loopback.ts'
import { shellWord } from '../../../base/wording.ts'
import type { Config } from '../../../config/settings.ts'
import { OWN_FOLDER } from '../names.ts'
import { type IdentityOf, isWithin, wayIn } from '../same-folder.ts'

export type PlaceRules = {
  config: Pick<Config, 'server' | 'files'>
  /** Tidemark's own home, configuration and key: never part of a folder that is synced. */
  own: readonly string[]
  userHome?: string
  /** For tests. */
  identityOf?: IdentityOf
  platform?: NodeJS.Platform
}

/** The path without any link in it, as far as it is there; refused where it must not be used. */
export function allowedPlace(wanted: string, rules: PlaceRules): string {
  const userHome = rules.userHome ?? homedir()
  const path = wanted === '~' || wanted.startsWith('~/') ? join(userHome, wanted.slice(1)) : wanted
  if (!isAbsolute(path)) {
    throw new ProblemError(400, `${wanted} is not a whole path.`, {
      code: 'path-relative',
      hint: `Begin with / or ~/: ~/${basename(wanted) || 'OneDrive'}`,
    })
  }
  const real = realPath(resolve(path))
  const own = rules.own.map((folder) => realPath(resolve(folder)))
  const isOwn = real.split(sep).includes(OWN_FOLDER)
  const { identityOf } = rules
  if (isOwn || own.some((one) => isWithin(real, one, identityOf) || isWithin(one, real, identityOf))) {
    throw new ProblemError(400, `${real} is where Tidemark keeps its own files, or holds that place.`, {
      code: 'place-own',
      hint: 'Choose a folder beside it.',
    })
  }
  checkPrivate(real, realPath(resolve(userHome)), rules)
  const places = allowedRoots(rules.config, userHome)
  if (places.some((place) => isWithin(real, realPath(resolve(place))))) return real
  throw refused(real, places)
}

/** Of the system; those that begin so and are a user's own (`/root`, a disk under `/run/media`) are not. */
const SYSTEM_FOLDERS = [
  ...['/bin', '/boot', '/dev', '/etc', '/lib', '/lib32', '/lib64', '/proc', '/root', '/run', '/sbin', '/sys'],
  ...['/usr', '/var/lib', '/var/log', '/var/mail', '/var/spool', '/private/etc', '/System', '/Library'],
]
const DISKS = '/run/media'

function checkPrivate(path: string, userHome: string, rules: PlaceRules): void {
  const { identityOf, platform = process.platform } = rules
  const inHome = wayIn(path, userHome, identityOf)
  if (isWithin(userHome, path, identityOf)) throw onlyByHand(path, 'your home itself, or holds it')
  const isHidden =
    inHome?.some((name) => name.startsWith('.')) ||
    hiddenIn(userHome).some((one) => isWithin(path, one, identityOf) || isWithin(one, path, identityOf))
  if (isHidden) {
    const dotted = 'a folder of your home whose name begins with a dot'
    throw onlyByHand(path, `${dotted}, lies in one, or holds what such a name leads to`)
  }
  if (platform === 'darwin' && inHome?.[0]?.toLowerCase() === 'library')
    throw onlyByHand(path, 'where programs keep what is yours')
  // Some users of containers and services have / for a home, and with it all of the system.
  const hasHome = dirname(userHome) !== userHome
  if ((inHome && hasHome) || isWithin(path, DISKS)) return
  const system = SYSTEM_FOLDERS.find(
    (folder) => isWithin(path, folder, identityOf) || isWithin(folder, path, identityOf),
  )
  if (system !== undefined) throw onlyByHand(path, `of the system (${system})`)
}

/** Where these lead: they may be links into another folder, or mounted elsewhere, too. */
function hiddenIn(userHome: string): string[] {
  try {
    const names = readdirSync(userHome).filter((name) => name.startsWith('.'))
    return names.map((name) => realPath(join(userHome, name)))
  } catch {
    return [] // there is no home, and so nothing in it
  }
}

function onlyByHand(path: string, what: string): ProblemError {
  return new ProblemError(403, `${path} is ${what}: such a folder cannot be added from here.`, {
    code: 'place-private',
    hint: `If you mean it, name it on the command line of that machine: tidemark files sync ${shellWord(path)}`,
  })
}

function allowedRoots({ files, server }: PlaceRules['config'], userHome: string): readonly string[] {
  if (files.allowed_roots.length > 0) return files.allowed_roots
  return exposedAs({ host: server.host, allowedHosts: server.allowed_hosts }) === undefined ? [userHome] : []
}

function refused(path: string, places: readonly string[]): ProblemError {
  const setting = `files.allowed_roots = [${JSON.stringify(dirname(path))}]`
  if (places.length === 0) {
    return new ProblemError(403, 'Folders cannot be added here, since others can reach this server.', {
      code: 'folders-off',
      hint: `Add it on that machine with: tidemark files sync FOLDER. Or allow places for it: ${setting}`,
    })
  }
  return new ProblemError(403, `Folders can be added in ${places.join(', ')}, and ${path} is not there.`, {
    code: 'place-refused',
    hint: `Choose a place there, or allow another one: ${setting}`,
  })
}

/** Links on the way are followed as far as it is there: what is checked is what is used. */
function realPath(path: string): string {
  const missing: string[] = []
  for (let at = path; ; at = dirname(at)) {
    try {
      return join(realpathSync(at), ...missing)
    } catch {
      // Not there, or not to be looked at: the folder above tells.
      if (dirname(at) === at) return path
      missing.unshift(basename(at))
    }
  }
}
