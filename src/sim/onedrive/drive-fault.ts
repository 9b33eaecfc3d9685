/** Why a drive refuses something, in Graph's words; which status that is on the wire is said in errors.ts. */

export type DriveFaultCode =
  | 'invalidRequest'
  | 'accessDenied'
  | 'itemNotFound'
  | 'nameAlreadyExists'
  | 'resourceModified'
  | 'quotaLimitReached'
  | 'notSupported'
  | 'invalidRange'

export class DriveFault extends Error {
  readonly code: DriveFaultCode

  constructor(code: DriveFaultCode, message: string) {
    super(message)
    this.code = code
  }
}
