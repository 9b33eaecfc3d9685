/** `mail:ann@example.com` as people would say it: whose, and what it is a copy of. */
export function streamTitle(name: string): { title: string; kind: string } {
  const colon = name.indexOf(':')
  if (colon <= 0 || colon === name.length - 1) return { title: name, kind: 'Stream' }
  const kind = name.slice(0, colon)
  return { title: name.slice(colon + 1), kind: kind[0]!.toUpperCase() + kind.slice(1) }
}
