/**
 * With whose eyes somebody searches. One's own, unless an admin says whose; that is written down before anything is
 * looked at. Which accounts these are is looked up in the same request.
 */
import { notFound, ProblemError } from '../../app/problem.ts'
import type { Runtime } from '../../app/runtime.ts'
import { noteLook, type RequestUser, readerOf } from '../../app/user.ts'
import type { Reader } from '../../search/contract.ts'

export type Eyes = {
  reader: Reader
  /** Whose they are, where they are not one's own. */
  seenAs: string | null
}

/** `as`: the name of a user. `what`: what is looked at, for who reads about it later. */
export async function eyesOf(
  services: Pick<Runtime, 'users' | 'accounts'>,
  user: RequestUser,
  { as, what }: { as: string | undefined; what: string },
): Promise<Eyes> {
  if (as === undefined || as.trim().toLowerCase() === user.name) {
    return { reader: await readerOf(services, user), seenAs: null }
  }
  if (user.role !== 'admin') {
    throw new ProblemError(403, 'Only admins may see with the eyes of others.', { code: 'admins-only' })
  }
  const other = await services.users.find(as)
  if (!other) {
    const names = (await services.users.list()).map(({ name }) => name)
    throw notFound(`There is no user ${as}.`, {
      code: 'user-unknown',
      hint: `There are: ${names.slice(0, NAMES_MAX).join(', ')}.`,
    })
  }
  await noteLook(services, user, { whose: other.name, what })
  return { reader: await readerOf(services, other), seenAs: other.name }
}

/** Told to an admin who has named nobody. */
const NAMES_MAX = 20
