/** Small words that sentences for people are made with. */
import { formatCount } from './format.ts'

export function plural(n: number, one: string, many = `${one}s`): string {
  return n === 1 ? one : many
}

/** `1,200 messages` */
export function counted(n: number, one: string, many?: string): string {
  return `${formatCount(n)} ${plural(n, one, many)}`
}

/** A word as a shell takes it, for commands that are suggested. */
export function shellWord(text: string): string {
  return /^[\w.,:@%+=/-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`
}
