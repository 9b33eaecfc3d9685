/** Small words that sentences for people are made with. */

export function plural(n: number, one: string, many = `${one}s`): string {
  return n === 1 ? one : many
}

/** A word as a shell takes it, for commands that are suggested. */
export function shellWord(text: string): string {
  return /^[\w.,:@%+=/-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`
}
