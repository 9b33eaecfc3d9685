/**
 * The labels of a mailbox, and the sets of them that messages carry. A set exists once, however many
 * messages carry it, and is never changed: a message with other labels gets another set.
 */
import type { LabelChange, LabelFields, SimLabel } from './mailbox-contract.ts'
import { mailboxFault, notFound } from './mailbox-fault.ts'

const SYSTEM_LABELS = [
  'CHAT',
  'SENT',
  'INBOX',
  'IMPORTANT',
  'TRASH',
  'DRAFT',
  'SPAM',
  'CATEGORY_FORUMS',
  'CATEGORY_UPDATES',
  'CATEGORY_PERSONAL',
  'CATEGORY_PROMOTIONS',
  'CATEGORY_SOCIAL',
  'STARRED',
  'UNREAD',
] as const

/** Gmail allows this many user labels. */
const USER_LABELS_MAX = 10_000
const LABEL_NAME_CHARS_MAX = 225

/** Given by what a message is, never by hand. */
const FIXED_LABELS = new Set(['SENT', 'DRAFT', 'CHAT'])

export class LabelBook {
  readonly #labels = new Map<string, SimLabel>()
  readonly #sets = new Map<string, ReadonlySet<string>>()
  #created = 0

  constructor() {
    for (const id of SYSTEM_LABELS) this.#labels.set(id, { id, name: id, type: 'system' })
  }

  all(): SimLabel[] {
    return [...this.#labels.values()]
  }

  get(id: string): SimLabel | undefined {
    return this.#labels.get(id)
  }

  create(fields: LabelFields): SimLabel {
    if (this.#labels.size >= USER_LABELS_MAX) throw mailboxFault('sim-invalid', 'Too many labels')
    const name = this.#freeName(fields.name)
    this.#created += 1
    const label: SimLabel = { ...fields, name, id: `Label_${this.#created}`, type: 'user' }
    this.#labels.set(label.id, label)
    return label
  }

  update(id: string, fields: Partial<LabelFields>): SimLabel {
    const label = this.#userLabel(id)
    const name = fields.name === undefined ? label.name : this.#freeName(fields.name, id)
    const updated: SimLabel = { ...label, ...fields, name, id, type: 'user' }
    this.#labels.set(id, updated)
    return updated
  }

  delete(id: string): void {
    this.#labels.delete(this.#userLabel(id).id)
  }

  /** The shared set of these labels. */
  setOf(ids: Iterable<string>): ReadonlySet<string> {
    const sorted = [...new Set(ids)].sort()
    const key = sorted.join('\n')
    let set = this.#sets.get(key)
    if (!set) {
      set = new Set(sorted)
      this.#sets.set(key, set)
    }
    return set
  }

  /**
   * The set after a change. What goes to the trash or to spam leaves the inbox; coming back from there
   * does not bring it back into the inbox, so whoever undoes must add INBOX itself.
   */
  changed(set: ReadonlySet<string>, change: LabelChange): ReadonlySet<string> {
    const next = new Set(set)
    for (const id of change.remove ?? []) next.delete(id)
    for (const id of change.add ?? []) next.add(id)
    if (change.add?.includes('TRASH')) next.delete('SPAM')
    else if (change.add?.includes('SPAM')) next.delete('TRASH')
    if (change.add?.includes('TRASH') || change.add?.includes('SPAM')) next.delete('INBOX')
    return this.setOf(next)
  }

  /** Refuses a change that Gmail refuses. */
  checkChange(change: LabelChange): void {
    for (const id of [...(change.add ?? []), ...(change.remove ?? [])]) {
      if (!this.#labels.has(id) || FIXED_LABELS.has(id)) throw invalidLabel(id)
    }
    const both = change.add?.find((id) => change.remove?.includes(id))
    if (both) throw mailboxFault('sim-invalid', `Cannot both add and remove the same label: ${both}`)
  }

  /** A message may be inserted as sent mail, but a draft is made as a draft. */
  checkInsert(ids: readonly string[]): void {
    for (const id of ids) {
      if (!this.#labels.has(id) || id === 'DRAFT' || id === 'CHAT') throw invalidLabel(id)
    }
  }

  /** Ids of the labels that a search means by this name: case and the kind of separator do not matter. */
  named(name: string): string[] {
    const wanted = searchName(name)
    return this.all()
      .filter((label) => searchName(label.name) === wanted || label.id.toLowerCase() === name.toLowerCase())
      .map(({ id }) => id)
  }

  #userLabel(id: string): SimLabel {
    const label = this.#labels.get(id)
    if (!label) throw notFound()
    if (label.type === 'system') throw mailboxFault('sim-invalid', `Invalid label: ${id} is a system label`)
    return label
  }

  #freeName(name: string | undefined, own?: string): string {
    const trimmed = name?.trim() ?? ''
    if (!trimmed || trimmed.length > LABEL_NAME_CHARS_MAX) {
      throw mailboxFault('sim-invalid', 'Invalid label name')
    }
    const taken = this.all().some(
      (label) => label.id !== own && label.name.toLowerCase() === trimmed.toLowerCase(),
    )
    if (taken) throw mailboxFault('sim-conflict', 'Label name exists or conflicts')
    return trimmed
  }
}

function invalidLabel(id: string): Error {
  return mailboxFault('sim-invalid', `Invalid label: ${id}`)
}

function searchName(name: string): string {
  return name.toLowerCase().replaceAll(/[\s/_-]+/g, '-')
}
