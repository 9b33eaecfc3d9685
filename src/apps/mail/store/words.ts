/**
 * Words as the index of a shard sees them. For queries SQLite itself is asked; for texts that are shown, where a
 * character more or less only changes what is marked, the same rules are followed here.
 */
import { DatabaseSync, type StatementSync } from 'node:sqlite'
import { WORDS_TOKENIZER } from './schema.ts'

export type WordPlace = { word: string; start: number; end: number }

/** The words of a piece of a query, as they stand in the index; none for signs and pictures. */
export function indexedWords(text: string): string[] {
  if (/^[a-z0-9]*$/i.test(text)) return text === '' ? [] : [text.toLowerCase()]
  probe ??= openProbe()
  return probe(text)
}

/** The words of a text and where they stand, from `from` on. */
export function* wordsOf(text: string, from = 0): Generator<WordPlace> {
  const pattern = /[\p{L}\p{N}\p{Co}](?:[\p{L}\p{N}\p{Co}]|[\u0300-\u036f])*/gu
  pattern.lastIndex = from
  for (let found = pattern.exec(text); found; found = pattern.exec(text)) {
    yield { word: foldWord(found[0]), start: found.index, end: found.index + found[0].length }
  }
}

/** Small letters without accents. As in the index, only Latin letters lose theirs: й is not и. */
export function foldWord(word: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: all of ASCII
  if (/^[\u0000-\u007f]*$/.test(word)) return word.toLowerCase()
  let folded = ''
  for (const char of word) {
    if (/[\u0300-\u036f]/.test(char)) continue
    const [base = ''] = char.normalize('NFD')
    folded += /[a-z]/i.test(base) ? base.toLowerCase() : lowerCase(char)
  }
  return folded
}

/** One character for one, and the two forms of a small letter that the index takes for one. */
function lowerCase(char: string): string {
  if (char === 'ς') return 'σ'
  if (char === 'ſ') return 's'
  const lower = char.toLowerCase()
  return lower.length === char.length ? lower : char
}

/** SQLite answers for one process: opened on first use, in memory, and never written to a file. */
let probe: ((text: string) => string[]) | undefined

function openProbe(): (text: string) => string[] {
  const db = new DatabaseSync(':memory:')
  db.exec(`CREATE VIRTUAL TABLE probe USING fts5(text, tokenize="${WORDS_TOKENIZER}")`)
  db.exec(`CREATE VIRTUAL TABLE probe_words USING fts5vocab(probe, 'instance')`)
  const insert: StatementSync = db.prepare(`INSERT INTO probe(rowid, text) VALUES (1, ?)`)
  const read = db.prepare(`SELECT term FROM probe_words ORDER BY offset`)
  const remove = db.prepare(`DELETE FROM probe`)
  return (text) => {
    insert.run(text.toWellFormed())
    try {
      return read.all().map(({ term }) => String(term))
    } finally {
      remove.run()
    }
  }
}
