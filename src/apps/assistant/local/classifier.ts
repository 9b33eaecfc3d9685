/**
 * Sorting without a language model: what rules say of the sender, words that tell, and what the mail resembles.
 *
 * The examples are mails written for this project (the training half of eval/mails) and the user's own corrections,
 * which weigh more. From them a linear model is fitted, in some milliseconds and again when corrections change; nothing
 * is downloaded. What a mail resembles is told by the embedding model of the search; where that is missing or down, a
 * model without it decides.
 *
 * Automated mail is never sorted as needs_response, whatever the model says.
 */
import { createHash } from 'node:crypto'
import { cutText } from '../../../search/extract/clean-text.ts'
import { CATEGORIES, type Category, type Classification, type VisibleMessage } from '../contract.ts'
import { halfOf, labelledMails, mailMessage } from '../eval/mails.ts'
import { judgeSender } from '../rules.ts'
import { SMALL_WORDS } from './cues.ts'
import { type Example, fit, type LinearModel, likeness, textFeatures } from './linear-model.ts'
import { areOfSameModel, storedVectors } from './vectors.ts'

export type Embed = (texts: readonly string[], signal: AbortSignal) => Promise<Float32Array[]>
export type Correction = { text: string; category: Category }

export type LocalClassifier = {
  classify(
    mail: VisibleMessage,
    examples: readonly Correction[],
    signal: AbortSignal,
  ): Promise<Omit<Classification, 'isAutomated'>>
}

const EXAMPLE_CHARS_MAX = 1_000
const CORRECTIONS_MAX = 500
/** One word of the user counts as much as several of ours. */
const CORRECTION_WEIGHT = 1.5
const ALIKE_WEIGHT = 0.8

/** What is compared: the same for a mail that is asked about and for one that was corrected. */
export function exampleTextOf(mail: VisibleMessage): string {
  return cutText(`${mail.from.name}\n${mail.subject}\n${mail.newText || mail.text}`, EXAMPLE_CHARS_MAX)
}

export function openLocalClassifier({ embed }: { embed: Embed | undefined }): LocalClassifier {
  const learner = new Learner(embed)
  return {
    async classify(mail, corrections, signal) {
      const learned = corrections.slice(-CORRECTIONS_MAX)
      const { model, vectorOf, knownVector } = await learner.model(learned, signal)
      const text = exampleTextOf(mail)
      const isAutomated = judgeSender(mail, { blacklist: [] }).isAutomated
      const vector = await vectorOf(text, signal)
      const shares = model.shares({ features: textFeatures(text, { isAutomated }), vector, text })
      const alike = learned.map((one) => {
        const other = cutText(one.text, EXAMPLE_CHARS_MAX)
        return { ...one, like: likeness({ text, vector }, { text: other, vector: knownVector(other) }) }
      })
      return decide(leanTo(shares, alike), { isAutomated, text, isEmbedded: model.isEmbedded })
    },
  }
}

/** What the user said of a mail that is nearly the same counts more than what mail in general is like. */
function leanTo(
  shares: Record<Category, number>,
  alike: readonly { category: Category; like: number }[],
): Record<Category, number> {
  // The last of several that are as like.
  const nearest = alike.reduce<(typeof alike)[number] | undefined>(
    (best, one) => (one.like > 0 && one.like >= (best?.like ?? 0) ? one : best),
    undefined,
  )
  if (!nearest) return shares
  const weight = nearest.like * ALIKE_WEIGHT
  return Object.fromEntries(
    CATEGORIES.map((category) => {
      return [category, shares[category] * (1 - weight) + (category === nearest.category ? weight : 0)]
    }),
  ) as Record<Category, number>
}

function decide(
  shares: Record<Category, number>,
  { isAutomated, text, isEmbedded }: { isAutomated: boolean; text: string; isEmbedded: boolean },
): Omit<Classification, 'isAutomated'> {
  const open = CATEGORIES.filter((category) => !(isAutomated && category === 'needs_response'))
  const total = open.reduce((sum, category) => sum + shares[category], 0)
  const category = open.reduce((best, one) => (shares[one] > shares[best] ? one : best))
  return {
    category,
    confidence: total > 0 ? Math.round((shares[category] / total) * 100) / 100 : 0,
    reasoning: `Sorted without a language model, by its words${isEmbedded ? ' and by what it resembles' : ''}.`,
    language: languageOf(text),
    style: '',
    by: 'local',
  }
}

type Ready = {
  model: LinearModel
  vectorOf: (text: string, signal: AbortSignal) => Promise<Float32Array | undefined>
  knownVector: (text: string) => Float32Array | undefined
}

/** Keeps the vectors of its examples, and the model of the corrections that it was asked with last. */
class Learner {
  readonly #embed: Embed | undefined
  readonly #built = builtInExamples()
  readonly #vectors = new Map<string, Float32Array>()
  #isProbed = false
  #last: { key: string; model: LinearModel } | undefined

  constructor(embed: Embed | undefined) {
    this.#embed = embed
  }

  /** Ours are made already, if the model is the one that made them. */
  async #takeStored(signal: AbortSignal): Promise<void> {
    this.#isProbed = true
    const texts = this.#built.map(({ text }) => text)
    const vectors = storedVectors(texts)
    if (!vectors) return
    const probe = (await this.#tryEmbed(texts.slice(0, 1), signal))?.[0]
    if (!probe) {
      this.#isProbed = false
      return
    }
    if (!areOfSameModel(probe, vectors[0]!)) return
    for (const [at, text] of texts.entries()) this.#vectors.set(text, vectors[at]!)
  }

  async model(corrections: readonly Correction[], signal: AbortSignal): Promise<Ready> {
    const own = corrections.map(({ text, category }): Example => {
      const example = cutText(text, EXAMPLE_CHARS_MAX)
      const features = textFeatures(example, { isAutomated: undefined })
      return { text: example, category, weight: CORRECTION_WEIGHT, features }
    })
    const examples = [...this.#built, ...own]
    const isEmbedded = await this.#embedAll(
      examples.map(({ text }) => text),
      signal,
    )
    const key = keyOf(corrections, isEmbedded)
    if (this.#last?.key !== key) {
      const vectors = isEmbedded ? examples.map(({ text }) => this.#vectors.get(text)!) : undefined
      this.#last = { key, model: fit(examples, vectors) }
    }
    return {
      model: this.#last.model,
      vectorOf: (text, how) => this.#vectorOf(text, isEmbedded, how),
      knownVector: (text) => this.#vectors.get(text),
    }
  }

  /** False where it cannot be had: that is no reason not to sort. */
  async #embedAll(texts: readonly string[], signal: AbortSignal): Promise<boolean> {
    if (!this.#embed) return false
    if (!this.#isProbed) await this.#takeStored(signal)
    const missing = texts.filter((text) => !this.#vectors.has(text))
    if (missing.length === 0) return true
    const vectors = await this.#tryEmbed(missing, signal)
    // What users have corrected comes and goes; ours stay.
    const ours = new Set(this.#built.map(({ text }) => text))
    if (this.#vectors.size > ours.size + 4 * CORRECTIONS_MAX) {
      for (const text of this.#vectors.keys())
        if (!ours.has(text) && !texts.includes(text)) this.#vectors.delete(text)
    }
    for (const [at, vector] of (vectors ?? []).entries()) this.#vectors.set(missing[at]!, vector)
    return vectors !== undefined
  }

  async #vectorOf(text: string, isEmbedded: boolean, signal: AbortSignal): Promise<Float32Array | undefined> {
    return isEmbedded ? (await this.#tryEmbed([text], signal))?.[0] : undefined
  }

  async #tryEmbed(texts: readonly string[], signal: AbortSignal): Promise<Float32Array[] | undefined> {
    try {
      return await this.#embed?.(texts, signal)
    } catch (error) {
      if (signal.aborted) throw error
      // The words are left.
      return undefined
    }
  }
}

export function builtInExamples(): Example[] {
  return labelledMails()
    .filter((mail) => halfOf(mail) === 'train')
    .map((labelled) => {
      const mail = mailMessage(labelled)
      const text = exampleTextOf(mail)
      const { isAutomated } = judgeSender(mail, { blacklist: [] })
      return { text, category: labelled.category, weight: 1, features: textFeatures(text, { isAutomated }) }
    })
}

function keyOf(corrections: readonly Correction[], isEmbedded: boolean): string {
  return createHash('sha256')
    .update(JSON.stringify([isEmbedded, corrections]))
    .digest('hex')
}

/** '' where no language has more of its small words than the others. */
export function languageOf(text: string): string {
  const words =
    text
      .toLowerCase()
      .match(/\p{L}+|¿/gu)
      ?.slice(0, 300) ?? []
  const counts = Object.entries(SMALL_WORDS)
    .map(([language, small]) => ({ language, count: words.filter((word) => small.includes(word)).length }))
    .sort((one, other) => other.count - one.count)
  const [first, second] = counts
  return first && first.count >= 2 && first.count > (second?.count ?? 0) ? first.language : ''
}
