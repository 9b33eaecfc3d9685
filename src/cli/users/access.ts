/** How users get in: tokens for their programs, and addresses for their browsers. */
import { randomBytes } from 'node:crypto'
import type { CliContext } from '../../app/command.ts'
import { OWNER } from '../../app/user.ts'
import { systemClock } from '../../base/clock.ts'
import { UsageError } from '../../base/errors.ts'
import { distance, isoTime } from '../../base/moment.ts'
import { TOKEN_BYTES, tokenText } from '../../ledger/users.ts'
import { serverUrl } from '../../server/http-server.ts'
import { addressFor } from '../serve/run.ts'
import { serverToken } from '../serve/token.ts'
import { findUser, withUsers } from './list.ts'

export async function addToken(
  context: CliContext,
  { name, label }: { name: string; label: string },
): Promise<void> {
  await withUsers(context, async ({ users }) => {
    const user = await findUser(users, name)
    const token = tokenText(randomBytes(TOKEN_BYTES))
    const { id } = await users.addToken(user.id, { label, token })
    await users.note(OWNER, 'token-made', `${user.name} #${id}`)
    if (context.output.json) {
      context.output.value({ id, user: user.name, label, token })
      return
    }
    context.output.line(token)
    context.output.note('This is the only time that it is shown.')
  })
}

export async function listTokens(context: CliContext, name: string): Promise<void> {
  await withUsers(context, async ({ users }) => {
    const user = await findUser(users, name)
    const rows = await users.tokens(user.id)
    const now = systemClock.now()
    context.output.listing({
      columns: [
        { title: 'token', value: ({ id }) => `#${id}` },
        { title: 'label', value: ({ label }) => label },
        { title: 'made', value: ({ createdAtMs }) => distance(createdAtMs, now) },
        { title: 'last used', value: ({ usedDayMs }) => dayOf(usedDayMs) ?? 'never' },
      ],
      rows,
      json: rows.map(({ id, label, createdAtMs, usedDayMs }) => ({
        id,
        label,
        createdAt: isoTime(createdAtMs),
        usedOn: dayOf(usedDayMs),
      })),
      empty: `${user.name} has no token.`,
    })
  })
}

function dayOf(ms: number | null): string | null {
  return ms === null ? null : isoTime(ms).slice(0, 10)
}

export async function revokeToken(
  context: CliContext,
  { name, id }: { name: string; id: number },
): Promise<void> {
  await withUsers(context, async ({ users }) => {
    const user = await findUser(users, name)
    if (!(await users.revokeToken(user.id, id))) {
      throw new UsageError(`${user.name} has no token #${id}.`, { code: 'token-unknown' })
    }
    await users.note(OWNER, 'token-revoked', `${user.name} #${id}`)
    if (context.output.json) context.output.value({ id, user: user.name, revoked: true })
    else context.output.line(`The token #${id} of ${user.name} is worth nothing any more.`)
  })
}

export async function printSignIn(
  context: CliContext,
  { name, port }: { name: string; port: number | undefined },
): Promise<void> {
  const loaded = await context.loadConfig()
  const { server } = loaded.values
  const user = await withUsers(context, async ({ users }) => {
    const found = await findUser(users, name)
    if (found.state !== 'active') {
      throw new UsageError(`${found.name} is disabled.`, {
        code: 'user-disabled',
        hint: `Let them in again with: tidemark users enable ${found.name}`,
      })
    }
    await users.note(OWNER, 'sign-in-made', found.name)
    return found
  })
  const url = serverUrl(server.host, port ?? server.port)
  const address = addressFor(url, await serverToken(loaded), user.id)
  if (context.output.json) context.output.value({ url, user: user.name, signIn: address })
  else context.output.line(address)
}
