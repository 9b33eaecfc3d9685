import { createStore } from '../store.ts'
import type { Tone } from './tone.ts'

export type Toast = { id: number; text: string; tone: Tone }

const TOASTS_MAX = 4
/** Long enough to read two sentences; errors stay until they are closed. */
const SHOWN_MS = 6_000

export const toasts = createStore<readonly Toast[]>([])
let lastId = 0

export function showToast(text: string, options: { tone?: Tone } = {}): void {
  lastId += 1
  const toast: Toast = { id: lastId, text, tone: options.tone ?? 'neutral' }
  toasts.set([...toasts.get(), toast].slice(-TOASTS_MAX))
  if (toast.tone !== 'danger') setTimeout(() => closeToast(toast.id), SHOWN_MS)
}

export function closeToast(id: number): void {
  toasts.set(toasts.get().filter((toast) => toast.id !== id))
}
