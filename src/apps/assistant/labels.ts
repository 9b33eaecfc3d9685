/** The labels of the assistant in a mailbox: created or found, and set on conversations. */
import { asTidemarkError } from '../../base/errors.ts'
import type { GmailClient } from '../../cloud/gmail/client.ts'
import { DEFAULT_LABELS } from './account.ts'
import { LABELS, type LabelRole } from './contract.ts'
import type { LabelIds } from './store/accounts.ts'

/** Finds them by name, and makes those that are missing. Two who do it at once end with the same labels. */
export async function ensureLabels(
  client: GmailClient,
  names: Readonly<Partial<Record<LabelRole, string>>>,
  signal: AbortSignal,
): Promise<LabelIds> {
  const wanted = { ...DEFAULT_LABELS, ...names }
  const known = await idsByName(client, signal)
  const parents = Object.values(wanted).flatMap((name) => parentsOf(name))
  for (const name of [...new Set(parents), ...Object.values(wanted)]) {
    if (!known.has(name.toLowerCase())) known.set(name.toLowerCase(), await create(client, name, signal))
  }
  return Object.fromEntries(LABELS.map((role) => [role, known.get(wanted[role].toLowerCase())!])) as LabelIds
}

/** `a/b/c`: `a`, `a/b`. Gmail nests a label only below one that is there. */
function parentsOf(name: string): string[] {
  const pieces = name.split('/')
  return pieces.slice(1).map((_, at) => pieces.slice(0, at + 1).join('/'))
}

async function idsByName(client: GmailClient, signal: AbortSignal): Promise<Map<string, string>> {
  return new Map((await client.labels({ signal })).map(({ name, id }) => [name.toLowerCase(), id]))
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

/** The one label, and none of the others, on the whole conversation. Done archives. May be repeated. */
export async function setLabel(
  { client, labels }: { client: GmailClient; labels: LabelIds },
  thread: string,
  label: LabelRole | null,
  signal: AbortSignal,
): Promise<void> {
  const others = LABELS.filter((role) => role !== label).map((role) => labels[role])
  await client.modifyThread(
    {
      threadId: thread,
      add: label === null ? [] : [labels[label]],
      remove: label === 'done' ? [...others, 'INBOX'] : others,
    },
    { signal },
  )
}
