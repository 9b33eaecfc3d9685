/**
 * What went wrong with a call to Drive, and what can be done about it. `classify` is the only place that reads its error
 * answers; the other functions name what never became an answer.
 *
 * Invariants:
 * - only an error that Google itself wrote settles a file as gone or permanent: the page of a proxy says nothing about it
 * - what is refused for one file is `permanent` with Google's own reason as its code, and never stops a sync; only what
 *   concerns the whole account is `auth`
 */
import type { TidemarkError } from '../../base/errors.ts'
import { AnswerErrors, type ErrorAnswer, type Verdict } from '../answer-errors.ts'
import { classifyGoogle, type GoogleError } from '../google/errors.ts'

export const {
  unreachable,
  timedOut,
  wrongContentType,
  damagedAnswer,
  cutShort,
  tooLarge,
  decode,
  parseJson,
} = new AnswerErrors('Google Drive')

const SCOPE_REASONS = /^(?:insufficientScopes|ACCESS_TOKEN_SCOPE_INSUFFICIENT)$/

/** Why one file is refused. Google's words are the codes that people find when they search for them. */
export const REFUSALS: Readonly<Record<string, string>> = {
  insufficientFilePermissions: 'The account may not do this with the file',
  appNotAuthorizedToFile: 'The file was not opened to this app',
  domainPolicy: "The domain's policy does not allow it",
  teamDriveMembershipRequired: 'Only members of the shared drive may do this',
  cannotDownloadFile: 'Its owner does not allow it to be downloaded',
  cannotDownloadAbusiveFile: 'Google calls the file abusive and does not give it out',
  exportSizeLimitExceeded: 'It is larger than the 10 MB that Google exports',
  fileNotExportable: 'Google cannot export a file of this type',
  fileNotDownloadable: 'A file of this type has no bytes to download',
  malwareDetected: 'Google has found malware in it',
}

export function classify(answer: ErrorAnswer): TidemarkError {
  return classifyGoogle(answer, {
    service: 'Google Drive',
    strangerCode: 'not-drive',
    goneText: 'Google Drive has no such thing for this account',
    isScopeMissing: ({ reasons }) => reasons.some((reason) => SCOPE_REASONS.test(reason)),
    forbidden: refusalOfFile,
    refused: callRefusal,
  })
}

function refusalOfFile({ reasons }: GoogleError): Verdict | undefined {
  const code = reasons.find((reason) => reason in REFUSALS)
  return code === undefined ? undefined : { kind: 'permanent', code, message: REFUSALS[code]! }
}

function callRefusal(status: number, google: GoogleError): Verdict {
  if (status === 416) return { kind: 'permanent', code: 'range', message: 'The file has no such bytes' }
  const ofFile = refusalOfFile(google)
  if (ofFile) return ofFile
  const isToken = /page ?token/i.test([google.message, ...google.locations].join(' '))
  if (isToken) {
    return { kind: 'permanent', code: 'page-token-invalid', message: 'Google Drive does not know the page' }
  }
  return { kind: 'permanent', code: 'refused', message: 'Google Drive refused the call' }
}
