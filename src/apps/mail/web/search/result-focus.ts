/** The chosen result is the one that has the focus. */
const links = (): HTMLElement[] => [...document.querySelectorAll<HTMLElement>('[data-result]')]

/** To the next result or the one before; with none chosen, to the one that was, or the first. */
export function moveResult(step: 1 | -1, before: string | undefined): string | undefined {
  const all = links()
  const at = all.indexOf(document.activeElement as HTMLElement)
  const known = at >= 0 ? at + step : all.findIndex(({ dataset }) => dataset.result === before)
  return focusOn(all[Math.min(all.length - 1, Math.max(0, known))])
}

export function focusResult(key: string): string | undefined {
  return focusOn(links().find(({ dataset }) => dataset.result === key))
}

export const focusFirstResult = (): string | undefined => focusOn(links()[0])

export const isOnFirstResult = (): boolean => {
  const first = links()[0]
  return first !== undefined && document.activeElement === first
}

function focusOn(link: HTMLElement | undefined): string | undefined {
  if (!link) return undefined
  link.focus({ preventScroll: true })
  link.scrollIntoView({ block: 'nearest' })
  return link.dataset.result
}
