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

/** What lets this guest come to an item, by itself or by a folder above it, unless the nearest of them was withdrawn. */
export function sharesOf({ shares }: Pick<Guest, 'shares'>, item: Item): Share[] {
  const given = shares.filter((share) => isWithin(item, share.item))
  for (let at: Item | undefined = item; at; at = at.parent) {
    const nearest = given.find((share) => share.item === at)
    if (nearest) return nearest.role === 'none' ? [] : given.filter(({ role }) => role !== 'none')
  }
  return []
}

/** Whether a listing of what is around it names it to whoever asks. */
export function isGiven(guest: Guest | undefined, item: Item): boolean {
  return guest === undefined || sharesOf(guest, item).length > 0
}

/** What is not shared does not exist on Personal, and is forbidden on Business. */
export function checkGuest(drive: Drive, guest: Guest | undefined, item: Item): void {
  if (!guest) return
  const roles = sharesOf(guest, item).map(({ role }) => role)
  if (roles.length === 0) throw drive.type === 'personal' ? notFound() : new GraphError(graphFault(403))
  if (guest.need === 'write' && !roles.includes('write')) throw new GraphError(graphFault(403))
}
