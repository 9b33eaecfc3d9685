/** The labels of the assistant in a mailbox: created or found, and set on conversations. */
import { asTidemarkError } from '../../base/errors.ts'
import type { GmailClient } from '../../cloud/gmail/client.ts'
import { DEFAULT_LABELS } from './account.ts'
import { LABELS, type LabelRole } from './contract.ts'
import type { LabelIds } from './store/accounts.ts'

/**
 * Finds them by name, and makes those that are missing. Two who do it at once end with the same labels. Those of `kept`
 * stay while they are there, whatever they are called by now: the user may have renamed them.
 */
export async function ensureLabels(
  client: GmailClient,
  names: Readonly<Partial<Record<LabelRole, string>>>,
  signal: AbortSignal,
  kept?: LabelIds,
): Promise<LabelIds> {
  const wanted = { ...DEFAULT_LABELS, ...names }
  const known = await idsByName(client, signal)
  const there = new Set(known.values())
  if (kept && LABELS.every((role) => there.has(kept[role]))) return kept
  const missing = LABELS.filter((role) => !(kept && there.has(kept[role]))).map((role) => wanted[role])
  const parents = missing.flatMap(parentsOf)
  for (const name of [...new Set(parents), ...missing]) {
    if (!known.has(name.toLowerCase())) known.set(name.toLowerCase(), await create(client, name, signal))
  }
  const idOf = (role: LabelRole): string =>
    kept && there.has(kept[role]) ? kept[role] : known.get(wanted[role].toLowerCase())!
  return Object.fromEntries(LABELS.map((role) => [role, idOf(role)])) as LabelIds
}

/** `a/b/c`: `a`, `a/b`. Gmail nests a label only below one that is there. */
function parentsOf(name: string): string[] {
  const pieces = name.split('/')
  return pieces.slice(1).map((_, at) => pieces.slice(0, at + 1).join('/'))
}

/** Only labels of the user: with one of Gmail's own, sorting would trash, star or archive. */
async function idsByName(client: GmailClient, signal: AbortSignal): Promise<Map<string, string>> {
  const users = (await client.labels({ signal })).filter(({ type }) => type === 'user')
  return new Map(users.map(({ name, id }) => [name.toLowerCase(), id]))
}

async function create(client: GmailClient, name: string, signal: AbortSignal): Promise<string> {
  try {
    return (await client.createLabel({ name }, { signal })).id
  } catch (thrown) {
    // Somebody was quicker, or an answer was lost.
    if (asTidemarkError(thrown).code !== 'exists') throw thrown
    const id = (await idsByName(client, signal)).get(name.toLowerCase())
    if (id === undefined) throw thrown
    return id
  }
}

/** By these the user asks for something. */
const WISHES: ReadonlySet<LabelRole> = new Set(['needs_response', 'rework', 'done'])

export type LabelWish = {
  thread: string
  label: LabelRole | null
  /** What the conversation was seen to have, or has from us. */
  known: ReadonlySet<LabelRole>
  /** The messages that were read. */
  messages: readonly string[]
}

/**
 * The one label on the whole conversation, and none of the others, but for a wish that the user put there since it was
 * read: history tells of it, and it is seen to then. Done archives what was read, and nothing that came since. May be
 * repeated.
 */
export async function setLabel(
  { client, labels }: { client: GmailClient; labels: LabelIds },
  { thread, label, known, messages }: LabelWish,
  signal: AbortSignal,
): Promise<void> {
  const others = LABELS.filter((role) => role !== label && (!WISHES.has(role) || known.has(role)))
  await client.modifyThread(
    {
      threadId: thread,
      add: label === null ? [] : [labels[label]],
      remove: others.map((role) => labels[role]),
    },
    { signal },
  )
  if (label === 'done') await client.batchModify({ ids: messages, remove: ['INBOX'] }, { signal })
}
