/** Who else may come to what in a drive: what its owner shares with other accounts, and what a guest may do there. */
import type { Drive } from './drive.ts'
import { GraphError, graphFault, notFound } from './errors.ts'
import { type Item, isWithin } from './item.ts'

/** `none`: it was withdrawn. */
export type ShareRole = 'read' | 'write' | 'none'
export type Share = { item: Item; account: string; role: ShareRole }

export type Guest = { account: string; shares: readonly Share[]; need: 'read' | 'write' }

export function guestOf(
  owner: { account: string; shares: readonly Share[] },
  account: string,
  need: Guest['need'],
): Guest | undefined {
  if (owner.account === account) return undefined
  return { account, shares: owner.shares.filter((share) => share.account === account), need }
}

/** What lets this guest come to an item, by itself or by a folder above it. */
export function sharesOf({ shares }: Pick<Guest, 'shares'>, item: Item): Share[] {
  return shares.filter((share) => share.role !== 'none' && isWithin(item, share.item))
}

/** What is not shared does not exist on Personal, and is forbidden on Business. */
export function checkGuest(drive: Drive, guest: Guest | undefined, item: Item): void {
  if (!guest) return
  const roles = sharesOf(guest, item).map(({ role }) => role)
  if (roles.length === 0) throw drive.type === 'personal' ? notFound() : new GraphError(graphFault(403))
  if (guest.need === 'write' && !roles.includes('write')) throw new GraphError(graphFault(403))
}
