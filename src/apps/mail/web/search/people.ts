/** Senders and receivers as people know them. */
export type Person = { name: string; address: string }

export const personName = ({ name, address }: Person): string => name.trim() || address || 'unknown'

/** `Ann Lee, Bo`, and how many there are beyond. */
export function peopleNames(people: readonly Person[], most = 2): string {
  if (people.length === 0) return 'unknown'
  const shown = people.slice(0, most).map(personName).join(', ')
  return people.length > most ? `${shown} +${people.length - most}` : shown
}

/** With the address, which names can lie about. */
export function personFull({ name, address }: Person): string {
  if (name.trim() === '' || name.trim() === address) return address || 'unknown'
  return address === '' ? name : `${name} <${address}>`
}
