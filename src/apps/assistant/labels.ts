/** The labels of the assistant in a mailbox: created or found, and set on conversations. */
import { asTidemarkError } from '../../base/errors.ts'
import type { GmailClient } from '../../cloud/gmail/client.ts'
import { DEFAULT_LABELS } from './account.ts'
import { LABELS, type LabelRole } from './contract.ts'
import type { AccountRow, LabelIds, LabelNames, LabelsMade } from './store/accounts.ts'

/** As they are to be called. */
export function labelNamesOf(names: Readonly<Partial<Record<LabelRole, string>>>): LabelNames {
  return { ...DEFAULT_LABELS, ...names }
}

export function hasOtherNames({ labelNames }: Pick<AccountRow, 'labelNames'>, wanted: LabelNames): boolean {
  return labelNames !== null && LABELS.some((role) => labelNames[role] !== wanted[role])
}

/**
 * Finds them by name, and makes those that are missing. Two who do it at once end with the same labels. Those of `kept`
 * stay while they are there, whatever they are called by now: the user may have renamed them. One that is wanted under
 * another name than before is renamed, unless a label of the user has that name: then that one is taken. May be repeated.
 */
export async function ensureLabels(
  client: GmailClient,
  names: Readonly<Partial<Record<LabelRole, string>>>,
  signal: AbortSignal,
  kept?: Pick<AccountRow, 'labels' | 'labelNames'>,
): Promise<LabelsMade> {
  const wanted = labelNamesOf(names)
  const known = await idsByName(client, signal)
  const there = new Set(known.values())
  const before = (role: LabelRole): string | undefined =>
    kept && there.has(kept.labels[role]) ? kept.labels[role] : undefined
  const isRenamed = (role: LabelRole): boolean => (kept?.labelNames?.[role] ?? wanted[role]) !== wanted[role]
  const ours = new Set(LABELS.flatMap((role) => before(role) ?? []))
  const rename = async (id: string, name: string): Promise<void> => {
    await client.renameLabel({ id, name }, { signal })
    for (const [one, of] of [...known]) if (of === id) known.delete(one)
    known.set(name.toLowerCase(), id)
  }
  const make = async (name: string): Promise<void> => {
    if (!known.has(name.toLowerCase())) known.set(name.toLowerCase(), await create(client, name, signal))
  }
  const idOf = async (role: LabelRole): Promise<string> => {
    const id = before(role)
    if (id !== undefined && !isRenamed(role)) return id
    const name = wanted[role]
    for (const parent of parentsOf(name)) await make(parent)
    const holder = known.get(name.toLowerCase())
    // Names that two roles swap: the other one makes room, and is renamed in its turn.
    if (holder !== undefined && holder !== id && ours.has(holder)) await rename(holder, `${name} (${holder})`)
    if (id === undefined) await make(name)
    else if (!known.has(name.toLowerCase()) || holder === id) await rename(id, name)
    return known.get(name.toLowerCase())!
  }
  const ids: Partial<Record<LabelRole, string>> = {}
  for (const role of LABELS) ids[role] = await idOf(role)
  const labels = ids as LabelIds
  const renewed = LABELS.filter((role) => kept !== undefined && labels[role] !== kept.labels[role])
  return { labels, labelNames: wanted, renewed }
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
  /** What Done is for, of the messages that were read. */
  messages: readonly string[]
}

/**
 * The one label on the whole conversation, and none of the others, but for a wish that the user put there since it was
 * read: history tells of it, and it is seen to then. Done is set on what it is for, archives that and nothing that came
 * since. May be repeated.
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
      add: label === null || label === 'done' ? [] : [labels[label]],
      remove: others.map((role) => labels[role]),
    },
    { signal },
  )
  if (label === 'done') {
    await client.batchModify({ ids: messages, add: [labels.done], remove: ['INBOX'] }, { signal })
  }
}
