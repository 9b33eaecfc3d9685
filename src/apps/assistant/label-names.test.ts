/** The names of the assistant's labels: which are taken, what a new one does, and labels that were deleted. */
import assert from 'node:assert/strict'
import { afterEach, describe, test } from 'node:test'
import { UsageError } from '../../base/errors.ts'
import { DEFAULT_LABELS } from './account.ts'
import { ANN, type AssistWorld, type AssistWorldOptions, startAssistWorld } from './assist-world.suite.ts'
import { settingsFromToml } from './config-import.ts'
import { ensureLabels } from './labels.ts'

let world: AssistWorld | undefined
afterEach(async () => {
  await world?.close()
  world = undefined
})

async function begun(options: AssistWorldOptions = {}): Promise<AssistWorld> {
  world = await startAssistWorld(options)
  await world.onboard()
  await world.settled()
  return world
}

const signal = new AbortController().signal

describe('a name of a label', () => {
  const refused: [what: string, toml: string, why: RegExp][] = [
    ['of Gmail itself', 'fyi = "Trash"', /labels\.fyi: "Trash" is a label of Gmail itself/],
    [
      'below one of Gmail itself',
      'waiting = "INBOX/later"',
      /labels\.waiting: .* is a label of Gmail itself/,
    ],
    ['as the API of Gmail says it', 'fyi = "CATEGORY_UPDATES"', /a label of Gmail itself/],
    ['that two roles would have', 'fyi = "Later"\nwaiting = "later"', /is the label of \w+, too/],
    [
      'that another role has by itself',
      `fyi = "${DEFAULT_LABELS.done}"`,
      /labels\.fyi: .* the label of done/,
    ],
    ['with nothing between two slashes', 'fyi = "a//b"', /is no name of a label/],
  ]
  for (const [what, toml, why] of refused) {
    test(`${what} is refused when settings are taken over`, () => {
      assert.throws(
        () => settingsFromToml(`[labels]\n${toml}`),
        (thrown) =>
          thrown instanceof UsageError && thrown.code === 'import-invalid' && why.test(thrown.message),
      )
    })
  }

  test('of Gmail itself is refused when a mailbox begins, and nothing is made', async () => {
    world = await startAssistWorld({ accountSettings: { labels: { fyi: 'Starred' } } })
    await assert.rejects(world.onboard(), (thrown) => {
      return thrown instanceof UsageError && /"Starred" is a label of Gmail itself/.test(thrown.message)
    })
    assert.equal(world.called('labels.create'), 0)
    assert.equal(await world.tables.account(ANN), undefined)
  })

  test('is looked for among labels of the user only, whatever Gmail calls its own', async () => {
    const w = await begun()
    const { client } = await w.kinds.accounts.get(ANN)
    await assert.rejects(ensureLabels(client, { fyi: 'TRASH' }, signal))
  })
})
