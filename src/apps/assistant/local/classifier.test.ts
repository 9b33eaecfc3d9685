import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { systemClock } from '../../../base/clock.ts'
import { openBuiltin } from '../../../search/embed/builtin.ts'
import { evaluateSorting, sortingLines } from '../eval/classify.ts'
import { halfOf, type LabelledMail, labelledMails, mailMessage } from '../eval/mails.ts'
import { builtInExamples, languageOf, openLocalClassifier } from './classifier.ts'
import { areOfSameModel, storedVectors } from './vectors.ts'

const SIGNAL = new AbortController().signal
const MAIL: LabelledMail = {
  id: 'x',
  category: 'fyi',
  language: 'en',
  from: 'Ann <ann@friends.example>',
  subject: 'x',
  text: '',
  isBulk: false,
}

describe('the labelled mails', () => {
  const all = labelledMails()

  test('are at least 300, in four languages and more, each with a name of its own', () => {
    assert.ok(all.length >= 300, `${all.length}`)
    assert.equal(new Set(all.map(({ id }) => id)).size, all.length)
    assert.equal(new Set(all.map(({ text }) => text)).size, all.length)
    for (const language of ['en', 'de', 'fr', 'es']) {
      assert.ok(all.filter((mail) => mail.language === language).length >= 60, language)
    }
  })

  test('are split about in half by the hash of their names', () => {
    const train = all.filter((mail) => halfOf(mail) === 'train').length
    assert.ok(train > all.length * 0.35 && train < all.length * 0.65, `${train} of ${all.length}`)
  })
})

describe('the classifier without a model', () => {
  test('sorts three of four mails that it has never seen by words alone, and more with corrections', async (t) => {
    const local = openLocalClassifier({ embed: undefined })
    const shares: number[] = []
    for (const corrections of [0, 5, 20]) {
      const report = await evaluateSorting(
        (mail, learned) => local.classify(mail, learned, SIGNAL),
        corrections,
      )
      for (const line of sortingLines(report)) t.diagnostic(line)
      shares.push(report.all.right / report.all.of)
    }
    assert.ok(shares[0]! >= 0.75, `${shares[0]}`)
    assert.ok(shares[1]! > shares[0]! && shares[2]! > shares[0]!, shares.join(', '))
  })

  test('never sorts automated mail as something to answer', async () => {
    const local = openLocalClassifier({ embed: undefined })
    const mail = {
      ...MAIL,
      isBulk: true,
      text: 'Could you let me know? What do you think? Which one would you like?',
    }
    assert.notEqual((await local.classify(mailMessage(mail), [], SIGNAL)).category, 'needs_response')
  })

  test('learns from one correction what mail like it is', async () => {
    const local = openLocalClassifier({ embed: undefined })
    const text = 'Weekly regatta results: Möwe first, Albatros second, Kormoran third.'
    const mail = mailMessage({ ...MAIL, from: 'Regatta <regatta@club.example>', subject: 'Results', text })
    const before = await local.classify(mail, [], SIGNAL)
    const category = before.category === 'waiting' ? 'action_required' : 'waiting'
    const after = await local.classify(mail, [{ text: `Regatta\nResults\n${text}`, category }], SIGNAL)
    assert.equal(after.category, category)
    assert.equal(after.by, 'local')
  })

  test('still sorts where the embedding model is down, and stops where it is told to', async () => {
    const local = openLocalClassifier({
      embed: () => Promise.reject(new Error('down')),
    })
    const mail = mailMessage({
      ...MAIL,
      text: 'Please find attached invoice 12. Amount due: 40 EUR within 30 days.',
    })
    assert.equal((await local.classify(mail, [], SIGNAL)).category, 'payment_request')
    await assert.rejects(local.classify(mail, [], AbortSignal.abort()), /down/)
  })

  test('asks the embedding model of this package for one mail and not for its own examples', async () => {
    const embedder = openBuiltin({ threads: 1 }, { clock: systemClock })
    let asked = 0
    try {
      const local = openLocalClassifier({
        embed: (texts, signal) => {
          asked += texts.length
          return embedder.embed(texts, { purpose: 'document', signal })
        },
      })
      const mail = mailMessage({ ...MAIL, subject: 'Lunch?', text: 'Are you free on Friday? Let me know.' })
      assert.equal((await local.classify(mail, [], SIGNAL)).category, 'needs_response')
      assert.equal(asked, 2, 'the mail, and one example that tells which model it is')
    } finally {
      await embedder.close()
    }
  })

  test('has the vectors of its examples as they are now: eval/write-vectors.ts makes them anew', () => {
    const texts = builtInExamples().map(({ text }) => text)
    const vectors = storedVectors(texts)
    assert.equal(vectors?.length, texts.length)
    assert.ok(areOfSameModel(vectors![0]!, vectors![0]!))
    assert.ok(!areOfSameModel(vectors![0]!, vectors![1]!))
  })

  test('tells the language of nine of ten mails', () => {
    const all = labelledMails()
    const right = all.filter(({ text, language }) => languageOf(text) === language).length
    assert.ok(right >= all.length * 0.9, `${right} of ${all.length}`)
    assert.equal(languageOf('ok'), '')
  })
})
