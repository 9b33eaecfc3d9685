/** Light, dark, or as the system says. Remembered in this browser only. */
import { createStore } from './store.ts'

export type Theme = 'auto' | 'light' | 'dark'

const STORED_AS = 'tidemark-theme'
const ORDER: readonly Theme[] = ['auto', 'light', 'dark']

export const theme = createStore<Theme>('auto')
/** Grows when colours changed: what is drawn on a canvas must be drawn anew. */
export const colours = createStore(0)

export const nextTheme = (now: Theme): Theme => ORDER[(ORDER.indexOf(now) + 1) % ORDER.length]!

export function startTheme(): void {
  setTheme(asTheme(remembered()))
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => colours.set(colours.get() + 1))
}

export function setTheme(next: Theme): void {
  theme.set(next)
  if (next === 'auto') delete document.documentElement.dataset.theme
  else document.documentElement.dataset.theme = next
  try {
    localStorage.setItem(STORED_AS, next)
  } catch {
    // A browser without storage forgets it; nothing else is lost.
  }
  colours.set(colours.get() + 1)
}

function remembered(): string | null {
  try {
    return localStorage.getItem(STORED_AS)
  } catch {
    return null
  }
}

const asTheme = (text: string | null): Theme => (text === 'light' || text === 'dark' ? text : 'auto')
