/** What a clean-up is to do, as the form holds it, and in words. */
import type { ArchiveWish } from '../../api/schemas.ts'

export type Action = NonNullable<ArchiveWish['action']>
export type AgeUnit = 'd' | 'w' | 'mo' | 'y'
export type WishForm = { account: string; amount: string; unit: AgeUnit; query: string; action: Action }

export const ACTIONS: readonly { value: Action; text: string; hint: string }[] = [
  {
    value: 'unlabel',
    text: 'Take it out of the inbox',
    hint: 'It stays in Gmail under All Mail. Frees no space. Can be undone.',
  },
  {
    value: 'trash',
    text: 'Move it to the trash',
    hint: 'Gmail deletes it after 30 days. Can be undone until then.',
  },
  {
    value: 'delete',
    text: 'Delete it for good',
    hint: 'Gmail cannot bring it back; Tidemark can put it in again from its copy.',
  },
]

export const UNITS: readonly { value: AgeUnit; text: string }[] = [
  { value: 'd', text: 'days' },
  { value: 'w', text: 'weeks' },
  { value: 'mo', text: 'months' },
  { value: 'y', text: 'years' },
]

/** Undefined where the age is no whole number of up to four digits. */
export function wishOf(form: WishForm): Required<ArchiveWish> | undefined {
  const amount = form.amount.trim()
  if (form.account === '' || !/^\d{1,4}$/.test(amount)) return undefined
  const { account, query, action } = form
  return { account, olderThan: `${Number(amount)}${form.unit}`, query: query.trim(), action }
}

export const isSameWish = (a: ArchiveWish | undefined, b: ArchiveWish | undefined): boolean =>
  a !== undefined &&
  b !== undefined &&
  a.account === b.account &&
  a.olderThan === b.olderThan &&
  a.query === b.query &&
  a.action === b.action

/** Why this account cannot do that, or undefined. */
export function missingAccess(access: string | null, action: Action): string | undefined {
  if (access === null || access === 'full' || (access === 'modify' && action !== 'delete')) return undefined
  return action === 'delete'
    ? 'Tidemark may not delete in this account. Connect it again with full access to do so.'
    : 'Tidemark may only read this account. Connect it again and allow changes to do so.'
}
