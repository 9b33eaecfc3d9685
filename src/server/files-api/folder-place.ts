/**
 * Where the dashboard may add a folder. A path that comes over the network is a wish of whoever reaches the server:
 * on a server for this machine alone it may lie in the user's own home, and beyond that, or on a server that others
 * reach, only where the configuration says so. The command line asks nobody.
 */
import { realpathSync } from 'node:fs'
import { homedir } from 'node:os'
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from 'node:path'
import type { Config } from '../../config/settings.ts'
import { ProblemError } from '../problem.ts'
import { exposedAs } from '../security.ts'

export type PlaceRules = {
  config: Pick<Config, 'server' | 'files'>
  /** Tidemark's own: never part of a folder that is synced. */
  home: string
  userHome?: string
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
  const own = realPath(resolve(rules.home))
  if (isWithin(real, own) || isWithin(own, real)) {
    throw new ProblemError(400, `${real} is where Tidemark keeps its own files, or holds that place.`, {
      code: 'place-own',
      hint: 'Choose a folder beside it.',
    })
  }
  const places = allowedRoots(rules.config, userHome)
  if (places.some((place) => isWithin(real, realPath(resolve(place))))) return real
  throw refused(real, places)
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

function isWithin(path: string, folder: string): boolean {
  const way = relative(folder, path)
  return way === '' || (way !== '..' && !way.startsWith(`..${sep}`) && !isAbsolute(way))
}
