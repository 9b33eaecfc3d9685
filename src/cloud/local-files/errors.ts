/** What went wrong with a file, and what can be done about it. `classify` is the only place that reads Node's codes. */
import { TidemarkError } from '../../base/errors.ts'
import { objectDenied, objectMissing } from '../object-bytes.ts'

const MISSING: readonly string[] = ['ENOENT', 'ENOTDIR']
/** ELOOP: it is a link, and those are not followed. */
const DENIED: readonly string[] = ['EACCES', 'EPERM', 'ELOOP', 'EMLINK', 'EISDIR', 'ENXIO', 'ENAMETOOLONG']

export function classify(thrown: unknown, uri: string): TidemarkError {
  if (thrown instanceof TidemarkError) return thrown
  const code = (thrown as NodeJS.ErrnoException | undefined)?.code ?? ''
  // What Node puts into a name that is not UTF-8, and by which no file is found.
  if (MISSING.includes(code) && uri.includes('\uFFFD')) {
    const message = `${uri} has a name that is not UTF-8: give it another one`
    return new TidemarkError(message, { kind: 'permanent', code: 'object-name', cause: thrown })
  }
  if (MISSING.includes(code)) return objectMissing(uri, thrown)
  if (DENIED.includes(code)) return objectDenied(uri, thrown)
  if (code === 'EEXIST') {
    const message = `${uri} cannot be moved: there is a file of that name already`
    return new TidemarkError(message, { kind: 'permanent', code: 'target-exists', cause: thrown })
  }
  if (code === 'EXDEV') {
    const hint = 'Choose a folder on the same disk.'
    const message = `${uri} cannot be moved to another disk`
    return new TidemarkError(message, { kind: 'permanent', code: 'other-disk', hint, cause: thrown })
  }
  return new TidemarkError(`${uri} could not be read${code ? ` (${code})` : ''}`, {
    kind: 'transient',
    code: 'disk',
    cause: thrown,
  })
}

export function folderMissing(path: string): TidemarkError {
  const hint = 'Make it, or see that its disk is there.'
  return new TidemarkError(`The folder ${path} is not there.`, {
    kind: 'transient',
    code: 'folder-missing',
    hint,
  })
}

export function otherName(path: string): TidemarkError {
  const message = `${path} is the name of a link, or written in other letters than the folder that it leads to`
  const hint = 'Name the folder itself, as it is written.'
  return new TidemarkError(message, { kind: 'permanent', code: 'other-name', hint })
}
