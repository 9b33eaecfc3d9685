/**
 * How well mail is sorted: accuracy by category over the test half of the labelled mails, for whatever sorts it.
 *
 * Corrections are taken from one part of the test half (its mistakes first, as a user would meet them, then what it was
 * least sure of) and judged on the other, both ways round, so that no mail is asked about that was corrected.
 */
import { CATEGORIES, type Category, type VisibleMessage } from '../contract.ts'
import { type Correction, exampleTextOf } from '../local/classifier.ts'
import { halfOf, hashOf, isLater, type LabelledMail, labelledMails, mailMessage } from './mails.ts'

export type Sorter = (
  mail: VisibleMessage,
  corrections: readonly Correction[],
) => Promise<{ category: Category; confidence: number }>

export type Tally = { right: number; of: number }
export type SortingReport = {
  corrections: number
  all: Tally
  /** Of those that were written last. */
  later: Tally
  byCategory: Record<Category, Tally>
  byLanguage: Record<string, Tally>
  /** What it said of what. */
  wrong: { id: string; wanted: Category; said: Category }[]
}

type Asked = { mail: LabelledMail; message: VisibleMessage; category: Category; confidence: number }

export async function evaluateSorting(sort: Sorter, corrections: number): Promise<SortingReport> {
  const test = labelledMails().filter((mail) => halfOf(mail) === 'test')
  const parts = [0, 1].map((part) => test.filter(({ id }) => hashOf(`part ${id}`) % 2 === part))
  const answers: Asked[] = []
  for (const [at, part] of parts.entries()) {
    const learned = corrections === 0 ? [] : correctionsOf(await ask(sort, parts[1 - at]!, []), corrections)
    answers.push(...(await ask(sort, part, learned)))
  }
  return reportOf(answers, corrections)
}

async function ask(
  sort: Sorter,
  mails: readonly LabelledMail[],
  learned: readonly Correction[],
): Promise<Asked[]> {
  const answers: Asked[] = []
  for (const mail of mails) {
    const message = mailMessage(mail)
    const { category, confidence } = await sort(message, learned)
    answers.push({ mail, message, category, confidence })
  }
  return answers
}

function correctionsOf(answers: readonly Asked[], count: number): Correction[] {
  const isWrong = ({ mail, category }: Asked): number => (mail.category === category ? 0 : 1)
  return [...answers]
    .sort((one, other) => isWrong(other) - isWrong(one) || one.confidence - other.confidence)
    .slice(0, count)
    .map(({ mail, message }) => ({ text: exampleTextOf(message), category: mail.category }))
}

function reportOf(answers: readonly Asked[], corrections: number): SortingReport {
  const tally = (some: readonly Asked[]): Tally => ({
    right: some.filter(({ mail, category }) => mail.category === category).length,
    of: some.length,
  })
  const languages = [...new Set(answers.map(({ mail }) => mail.language))].sort()
  return {
    corrections,
    all: tally(answers),
    later: tally(answers.filter(({ mail }) => isLater(mail))),
    byCategory: Object.fromEntries(
      CATEGORIES.map((category) => [
        category,
        tally(answers.filter(({ mail }) => mail.category === category)),
      ]),
    ) as Record<Category, Tally>,
    byLanguage: Object.fromEntries(
      languages.map((language) => [
        language,
        tally(answers.filter(({ mail }) => mail.language === language)),
      ]),
    ),
    wrong: answers
      .filter(({ mail, category }) => mail.category !== category)
      .map(({ mail, category }) => ({ id: mail.id, wanted: mail.category, said: category })),
  }
}

/** For people, one line for each category and language. */
export function sortingLines({ corrections, all, later, byCategory, byLanguage }: SortingReport): string[] {
  const line = (name: string, { right, of }: Tally): string =>
    `${name.padEnd(18)} ${String(right).padStart(4)} of ${String(of).padStart(4)}  ${of === 0 ? '–' : `${Math.round((100 * right) / of)} %`}`
  return [
    `With ${corrections} corrections:`,
    line('all', all),
    line('written later', later),
    ...CATEGORIES.map((category) => line(category, byCategory[category])),
    ...Object.entries(byLanguage).map(([language, tally]) => line(language, tally)),
  ]
}
