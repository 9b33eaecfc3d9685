import { TidemarkError } from '../../base/errors.ts'

/** How a wrong call to the mailbox is answered; the HTTP side turns the code into 404, 400 or 409. */
export type MailboxFaultCode = 'sim-not-found' | 'sim-invalid' | 'sim-conflict'

export function mailboxFault(code: MailboxFaultCode, message: string): TidemarkError {
  return new TidemarkError(message, { kind: code === 'sim-not-found' ? 'gone' : 'permanent', code })
}

export function notFound(): TidemarkError {
  return mailboxFault('sim-not-found', 'Requested entity was not found.')
}
