/**
 * A document from a number and a seed: its name, its type, and its words when they are asked for. The same numbers
 * give the same document.
 */
import { type Random, seededRandom } from '../../base/random.ts'
import type { ContentInput } from './content.ts'
import { type Draft, type Kind, type KindChoice, kinds, pick } from './generate-kinds.ts'
import { gaps, type Topic, topics } from './generate-topics.ts'

export type DocumentSpec = { number: number; seed: number; kinds: KindChoice }

export type GeneratedDocument = { name: string; mimeType: string; content: ContentInput }

export function generatedDocument({ number, seed, kinds: which }: DocumentSpec): GeneratedDocument {
  const random = seededRandom(seed)
  const topic = pick(topics, random)
  const kind = pickKind(kinds[which], random)
  const title = filled(pick(topic.titles, random), random)
  const name = kind.extension === '' ? title : `${topic.file}-${number + 1}${kind.extension}`
  // The words are drawn anew from where the name ended, each time the same.
  const from = Math.floor(random() * 2 ** 32)
  const content = (): string | Uint8Array => {
    const drawn = seededRandom(from)
    return kind.write(draftOf({ topic, title: `${title} (no. ${number + 1})` }, drawn), drawn)
  }
  return { name, mimeType: kind.mimeType, content }
}

function pickKind(from: readonly Kind[], random: Random): Kind {
  let left = random() * from.reduce((sum, { share }) => sum + share, 0)
  for (const kind of from) {
    left -= kind.share
    if (left <= 0) return kind
  }
  return from.at(-1)!
}

function draftOf({ topic, title }: { topic: Topic; title: string }, random: Random): Draft {
  const sections = topic.headings
    .filter(() => random() < 0.8)
    .map((heading) => ({
      heading,
      paragraphs: Array.from({ length: 1 + Math.floor(random() * 3) }, () => paragraphOf(topic, random)),
    }))
  if (sections.length === 0)
    sections.push({ heading: topic.headings[0]!, paragraphs: [paragraphOf(topic, random)] })
  return { title, topic, sections }
}

function paragraphOf({ sentences }: Topic, random: Random): string {
  const count = 2 + Math.floor(random() * 4)
  const first = Math.floor(random() * sentences.length)
  return Array.from({ length: count }, (_, at) =>
    filled(sentences[(first + at * 3) % sentences.length]!, random),
  ).join(' ')
}

function filled(text: string, random: Random): string {
  return text.replace(/\{(\w+)\}/g, (_, gap: string) => pick(gaps[gap]!, random))
}
