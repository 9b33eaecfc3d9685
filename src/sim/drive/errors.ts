/** Errors as the Drive API words them. */
import { TidemarkError } from '../../base/errors.ts'
import type { Refusal } from '../faults.ts'
import { faultAnswer, GoogleError, refusalAnswer } from '../google/errors.ts'
import type { SimAnswer } from '../server.ts'

export const SERVICE = 'drive.googleapis.com'

/** What is said with a reason; a fault rule that names only the reason gets the words from here, too. */
const MESSAGES: Readonly<Record<string, string>> = {
  insufficientFilePermissions: 'The user does not have sufficient permissions for this file.',
  appNotAuthorizedToFile: 'The user has not granted the app 000000000000 read access to the file.',
  domainPolicy: 'The domain administrators have disabled Drive apps.',
  teamDriveMembershipRequired: 'The attempted action requires shared drive membership.',
  cannotDownloadFile: 'This file cannot be downloaded by the user.',
  cannotDownloadAbusiveFile: 'This file has been identified as malware or spam and cannot be downloaded.',
  exportSizeLimitExceeded: 'This file is too large to be exported.',
  fileNotDownloadable:
    'Only files with binary content can be downloaded. Use Export with Docs Editors files.',
  fileNotExportable: 'Export only supports Docs Editors files.',
  userRateLimitExceeded:
    'User Rate Limit Exceeded. Rate of requests for user exceed configured project quota.',
  rateLimitExceeded: 'Rate Limit Exceeded',
  sharingRateLimitExceeded:
    'Rate limit exceeded. User message: "Sorry, you have exceeded your sharing quota."',
  storageQuotaExceeded: "The user's Drive storage quota has been exceeded.",
  cannotModifyInheritedPermission: 'Cannot modify an inherited permission.',
}

export function forbidden(reason: string, message = MESSAGES[reason] ?? 'Forbidden'): GoogleError {
  return new GoogleError({ status: 403, reason, message })
}

export function fileNotFound(id: string): GoogleError {
  return new GoogleError({
    status: 404,
    reason: 'notFound',
    message: `File not found: ${id}.`,
    location: 'fileId',
    locationType: 'parameter',
  })
}

export function driveNotFound(id: string): GoogleError {
  return new GoogleError({
    status: 404,
    reason: 'notFound',
    message: `Shared drive not found: ${id}`,
    location: 'driveId',
    locationType: 'parameter',
  })
}

export function invalidParameter(name: string, message = 'Invalid Value'): GoogleError {
  return new GoogleError({
    status: 400,
    reason: 'invalid',
    message,
    location: name,
    locationType: 'parameter',
  })
}

export function badRequest(message: string, reason = 'badRequest'): GoogleError {
  return new GoogleError({ status: 400, reason, message })
}

/** What a handler threw, as an answer; a mistake of the simulator goes on. */
export function thrownAnswer(thrown: unknown): SimAnswer {
  if (thrown instanceof GoogleError) return faultAnswer(thrown.fault)
  if (thrown instanceof TidemarkError && thrown.kind === 'permanent') {
    if (thrown.code === 'sim-not-found') return faultAnswer(fileNotFound('').fault)
    return faultAnswer(badRequest(thrown.message).fault)
  }
  throw thrown
}

/** What a fault rule asked for. */
export function driveRefusal(refusal: Refusal): SimAnswer {
  const { status, reason } = refusal
  const known = reason === undefined ? undefined : MESSAGES[reason]
  if (status === 404 && reason === undefined) {
    return faultAnswer({ status, reason: 'notFound', message: refusal.message ?? 'File not found: .' })
  }
  return refusalAnswer({ ...refusal, message: refusal.message ?? known })
}
