/** Errors as Microsoft Graph words them. */
import type { Refusal } from '../faults.ts'
import { jsonAnswer, type SimAnswer } from '../server.ts'
import { DriveFault, type DriveFaultCode } from './drive-fault.ts'

export type GraphFault = {
  status: number
  code: string
  message: string
  innerCode?: string
  headers?: Record<string, string>
}

export class GraphError extends Error {
  readonly fault: GraphFault

  constructor(fault: GraphFault) {
    super(fault.message)
    this.fault = fault
  }
}

const DRIVE_STATUS: Record<DriveFaultCode, number> = {
  invalidRequest: 400,
  accessDenied: 403,
  itemNotFound: 404,
  nameAlreadyExists: 409,
  resourceModified: 412,
  invalidRange: 416,
  notSupported: 501,
  quotaLimitReached: 507,
}

/** What a refusal by a fault rule looks like. */
const REFUSED: Record<number, { code: string; message: string }> = {
  400: { code: 'invalidRequest', message: 'Invalid request.' },
  401: { code: 'InvalidAuthenticationToken', message: 'Access token has expired or is not yet valid.' },
  403: { code: 'accessDenied', message: 'Access denied.' },
  404: { code: 'itemNotFound', message: 'The resource could not be found.' },
  408: { code: 'requestTimeout', message: 'The request timed out.' },
  409: { code: 'nameAlreadyExists', message: 'The specified item name already exists.' },
  410: { code: 'resyncRequired', message: 'Resync required.' },
  412: { code: 'resourceModified', message: "ETag does not match current item's value." },
  416: { code: 'invalidRange', message: 'The requested range is not satisfiable.' },
  423: { code: 'resourceLocked', message: 'The resource is locked.' },
  429: { code: 'activityLimitReached', message: 'The request has been throttled.' },
  500: { code: 'generalException', message: 'An unspecified error has occurred.' },
  501: { code: 'notSupported', message: 'The request is not supported by the system.' },
  502: { code: 'UnknownError', message: 'Bad gateway.' },
  503: { code: 'serviceNotAvailable', message: 'The service is not available. Try the request again later.' },
  504: { code: 'UnknownError', message: 'The gateway timed out.' },
  507: { code: 'quotaLimitReached', message: 'Insufficient space available.' },
  509: { code: 'bandwidthLimitExceeded', message: 'The bandwidth limit has been exceeded.' },
}

export function graphFault(status: number, detail: Partial<Omit<GraphFault, 'status'>> = {}): GraphFault {
  const known = REFUSED[status] ?? { code: 'UnknownError', message: 'Something went wrong.' }
  return { status, ...known, ...detail }
}

export function faultAnswer({ status, code, message, innerCode, headers }: GraphFault): SimAnswer {
  // The ids are put in when it leaves: request-ids.ts.
  const innerError = innerCode === undefined ? {} : { code: innerCode }
  return jsonAnswer({ error: { code, message, innerError } }, status, headers)
}

export function refusalAnswer({ status, message, retryAfterSeconds }: Refusal): SimAnswer {
  // The reason of a rule is worded for another service.
  return faultAnswer(
    graphFault(status, {
      ...(message === undefined ? {} : { message }),
      ...(retryAfterSeconds === undefined ? {} : { headers: { 'retry-after': String(retryAfterSeconds) } }),
    }),
  )
}

/** What a route threw as an answer; what is no known fault is a mistake of the simulator and goes on. */
export function thrownAnswer(thrown: unknown): SimAnswer {
  if (thrown instanceof GraphError) return faultAnswer(thrown.fault)
  if (!(thrown instanceof DriveFault)) throw thrown
  return faultAnswer({ status: DRIVE_STATUS[thrown.code], code: thrown.code, message: thrown.message })
}

export function invalid(message: string): GraphError {
  return new GraphError(graphFault(400, { message }))
}

export function notFound(message = 'The resource could not be found.'): GraphError {
  return new GraphError(graphFault(404, { message }))
}
