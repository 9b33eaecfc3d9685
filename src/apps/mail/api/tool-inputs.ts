/** Messages and conversations by their ids alone: who asks may not know which account they are of. */

import { notFound, ProblemError } from '../../../app/problem.ts'
import type { OpenedArchive } from '../merged-search.ts'
import type { StoredMessage } from '../message.ts'
import { openArchive, readMessage } from './inputs.ts'
import type { MailServices } from './route.ts'

type Wanted = { account: string | undefined; id: string }

export type FoundMessage = { opened: OpenedArchive; message: StoredMessage }
export type FoundThread = { opened: OpenedArchive; messages: readonly StoredMessage[] }

export async function findMessage(services: MailServices, { account, id }: Wanted): Promise<FoundMessage> {
  if (account !== undefined) return readMessage(services, { account, id })
  const found = await inEvery(services, async (opened) => {
    const message = await opened.archive.message(id)
    return message ? { opened, message } : undefined
  })
  return theOnly(found, { services, id, what: 'message' })
}

/** Also by the id of one of its messages. */
export async function findThread(services: MailServices, { account, id }: Wanted): Promise<FoundThread> {
  const look = (opened: OpenedArchive): Promise<FoundThread | undefined> => threadIn(opened, id)
  const found =
    account === undefined
      ? await inEvery(services, look)
      : [await look(await openArchive(services, account))].filter((one) => one !== undefined)
  return theOnly(found, { services, id, what: 'conversation' })
}

async function threadIn(opened: OpenedArchive, id: string): Promise<FoundThread | undefined> {
  const { archive } = opened
  const messages = await archive.thread(id)
  if (messages.length > 0) return { opened, messages }
  const message = await archive.message(id)
  return message ? { opened, messages: await archive.thread(message.threadId) } : undefined
}

/** An archive that cannot be opened matters only where the others do not have it. */
async function inEvery<T>(
  services: MailServices,
  look: (opened: OpenedArchive) => Promise<T | undefined>,
): Promise<T[]> {
  const found: T[] = []
  const failures: unknown[] = []
  for (const name of services.mail.accounts.names()) {
    try {
      const one = await look(await openArchive(services, name))
      if (one !== undefined) found.push(one)
    } catch (thrown) {
      failures.push(thrown)
    }
  }
  if (found.length === 0 && failures.length > 0) throw failures[0]
  return found
}

function theOnly<T extends { opened: OpenedArchive }>(
  found: readonly T[],
  { services, id, what }: { services: MailServices; id: string; what: string },
): T {
  const [first, second] = found
  if (first && second) {
    const owners = found.map(({ opened }) => opened.name).join(', ')
    throw new ProblemError(400, `Several accounts have a ${what} ${id}: ${owners}.`, {
      code: 'account-needed',
      hint: 'Name the account.',
    })
  }
  if (first) return first
  const isEmpty = services.mail.accounts.names().length === 0
  throw notFound(`There is no ${what} ${id}.`, {
    code: `${what}-unknown`,
    hint: isEmpty
      ? 'No mail account is connected. Connect one with: tidemark account add gmail'
      : 'Take an id that mail_search gives.',
  })
}
