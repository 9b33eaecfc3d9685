/**
 * What people write about, for documents made from a seed: documents/topics.json, sentences with gaps, by subject and
 * language.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

export type Topic = {
  /** A word for the file's name. */
  file: string
  language: 'en' | 'de' | 'fr' | 'es'
  titles: readonly string[]
  headings: readonly string[]
  sentences: readonly string[]
}

type Written = {
  /** What the gaps of the sentences are filled with. */
  gaps: Readonly<Record<string, readonly string[]>>
  topics: readonly Topic[]
}

export const { gaps, topics } = JSON.parse(
  readFileSync(join(import.meta.dirname, 'documents/topics.json'), 'utf8'),
) as Written
