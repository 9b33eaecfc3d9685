/** Every verb of `tidemark assist`, as people type it: a real home and ledger, the simulated Gmail and model over HTTP. */
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { before, describe, test } from 'node:test'
import { LETTERS, letter } from '../../src/apps/assistant/demo/letters.ts'
import { systemClock } from '../../src/base/clock.ts'
import { seededRandom } from '../../src/base/random.ts'
import { ADDRESS, type Ended, type World, worldsOf } from '../mail/world.ts'

const { worldOf } = worldsOf()

type Thread = { thread: string; subject: string; category: string; status: string; reworks: number }
type Event = { id: number; what: string; thread: string; canUndo: boolean }

let world: World

before(async () => {
  world = await worldOf({
    messages: 0,
    models: { models: ['simulated-model'] },
    settings: {
      TIDEMARK_MODELS_PROVIDER: 'openai-compatible',
      TIDEMARK_MODELS_MODEL: 'simulated-model',
      TIDEMARK_MODELS_INPUT_PRICE: '1',
      TIDEMARK_MODELS_OUTPUT_PRICE: '2',
      TIDEMARK_ASSIST_BACKLOG_MAX: '3',
      TIDEMARK_SEARCH_EMBEDDING: 'off',
    },
  })
  world.env.TIDEMARK_MODELS_BASE_URL = world.sim.models.baseUrl
  for (const [n, one] of LETTERS.entries()) arrive(one, n)
})

function arrive(
  one: (typeof LETTERS)[number],
  n: number,
  { sim, to }: { sim: World['sim']; to: string } = { sim: world.sim, to: ADDRESS },
): void {
  const atMs = systemClock.now()
  const raw = Buffer.from(letter(one, { to, atMs, n }))
  const mail = { raw, labelIds: ['INBOX', 'UNREAD'], internalMs: atMs }
  sim.gmail.mutations(to).arrive(mail, seededRandom(n))
}

async function assist(...args: string[]): Promise<Ended> {
  return world.run('assist', ...args)
}

async function done(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await assist(...args)
  assert.equal(code, 0, `assist ${args.join(' ')}: ${stdout}${stderr}`)
  return stdout
}

async function json<T>(...args: string[]): Promise<T> {
  return JSON.parse(await done(...args, '--json')) as T
}

async function threadOf(subject: string): Promise<Thread> {
  const items = await json<Thread[]>('list')
  const found = items.find((one) => one.subject === subject)
  assert.ok(found, `${subject} is not among ${items.map((one) => one.subject).join(', ')}`)
  return found
}

function labelsOn(thread: string): string[] {
  const mailbox = world.sim.gmail.mailbox(ADDRESS)
  const names = new Map(mailbox.labels().map(({ id, name }) => [id, name]))
  const message = mailbox.thread(thread)!.messages.find(({ labelIds }) => !labelIds.has('DRAFT'))!
  return [...message.labelIds].map((id) => names.get(id) ?? id).filter((name) => name.startsWith('🤖'))
}

const QUESTION = LETTERS[0]!.subject
const CONTRACT = LETTERS[3]!.subject

test('two mailboxes of one user stay within one cap of a day together; a sync does not wait for the next day', async () => {
  const day = (): number => Math.floor(systemClock.now() / 86_400_000)
  // The processes have the machine's clock: what meets midnight is seen once more, on the new day.
  for (let began = -1; began !== day(); ) {
    began = day()
    await twoMailboxes(() => began === day())
  }
})

async function twoMailboxes(isSameDay: () => boolean): Promise<void> {
  // Only answers cost: what a question reserves is then near to what it uses.
  const cap = 0.5
  const addresses = [ADDRESS, 'ann@work.example']
  const both = await worldOf({
    messages: 0,
    accounts: addresses.map((address) => ({ address, messages: 0 })),
    models: { models: ['simulated-model'] },
    settings: {
      TIDEMARK_MODELS_PROVIDER: 'openai-compatible',
      TIDEMARK_MODELS_MODEL: 'simulated-model',
      TIDEMARK_SEARCH_EMBEDDING: 'off',
      TIDEMARK_MODELS_OUTPUT_PRICE: '1000',
      TIDEMARK_MODELS_MAX_TOKENS: '64',
      TIDEMARK_MODELS_DAY_COST: String(cap),
      TIDEMARK_MODELS_DAY_TOKENS: '0',
      TIDEMARK_ASSIST_MODEL_WAIT_MINUTES: '0',
      TIDEMARK_ASSIST_BACKLOG_MAX: '1000',
    },
  })
  both.env.TIDEMARK_MODELS_BASE_URL = both.sim.models.baseUrl
  let spent = 0
  let last: Ended | undefined
  for (const address of addresses) {
    assert.equal((await both.run('assist', 'onboard', address)).code, 0)
    for (const [n, one] of LETTERS.entries()) arrive(one, n, { sim: both.sim, to: address })
    last = await both.run('assist', 'sync', '--account', address)
    const { stdout } = await both.run('assist', 'costs', '--json', '--account', address)
    const rows = JSON.parse(stdout) as { costMicros: number }[]
    spent += rows.reduce((sum, { costMicros }) => sum + costMicros / 1e6, 0)
    if (!isSameDay()) return
    assert.ok(spent > cap / 2 && spent <= cap, `${spent} after ${address}`)
  }
  assert.equal(last!.code, 3)
  assert.match(last!.stderr, /drafts? (?:is|are) not written: The user of ann@work\.example has used up/)
  both.env.TIDEMARK_MODELS_DAY_COST = '50'
  const { code, stderr } = await both.run('assist', 'sync')
  assert.equal(code, 0, stderr)
}

describe('tidemark assist', () => {
  test('before it is switched on, every verb says so and how', async () => {
    for (const verb of ['sync', 'status', 'briefing', 'costs']) {
      const { code, stderr } = await assist(verb)
      assert.equal(code, 2)
      assert.match(stderr, /switched on for no mailbox\..*tidemark assist onboard ADDRESS/s, verb)
    }
  })

  test('onboard makes the labels once, and refuses a mailbox that nobody connected', async () => {
    assert.match(await done('onboard', ADDRESS), /is on for/)
    const labels = world.sim.gmail.mailbox(ADDRESS).labels().length
    assert.match(await done('onboard', ADDRESS), /was on for .* already/)
    assert.equal(world.sim.gmail.mailbox(ADDRESS).labels().length, labels)
    const { code, stderr } = await assist('onboard', 'nobody@example.com')
    assert.equal(code, 2)
    assert.match(stderr, /no mail account nobody@example\.com/)
  })

  test('sync tells what the backlog costs before a model is asked, and sorts it after a yes', async () => {
    const { code, stdout, stderr } = await assist('sync')
    assert.equal(code, 3, stdout + stderr)
    assert.match(stdout + stderr, /Sorting 8 waiting messages in 8 threads with simulated-model costs about/)
    assert.equal(world.sim.models.counts.calls, 0)
    assert.match(await done('costs', '--estimate'), /^Sorting 8 waiting messages/)
    assert.match((await assist('status')).stdout, /agree: tidemark assist run --yes/)
    await done('sync', '--yes')
    assert.match(await done('status'), /inbox 8 = 8 classified \+ 0 skipped \+ 0 on their way/)
    assert.deepEqual(labelsOn((await threadOf(QUESTION)).thread), ['🤖 AI/Outbox'])
  })

  test('show says why a thread was sorted so, and its draft; list names those that wait', async () => {
    const { thread } = await threadOf(QUESTION)
    const shown = await done('show', thread)
    assert.match(shown, /category {2}needs_response \(model\)/)
    assert.match(shown, /Written by the simulated model/)
    assert.doesNotMatch(shown, /answers {3}/)
    assert.match(
      await done('show', thread, '--mail'),
      /answers {3}Clara Winter.*\n {4}Hello,\n.*\n {4}we met at the/s,
    )
    const { mail } = await json<{ mail: { items: { isAnswered: boolean }[] } }>('show', thread, '--mail')
    assert.deepEqual(
      mail.items.map(({ isAnswered }) => isAnswered),
      [true],
    )
    assert.match(await done('list', '--drafts'), /Could you send me the offer/)
    const mailbox = world.sim.gmail.mailbox(ADDRESS)
    const atMs = Number(mailbox.thread(thread)!.messages[0]!.internalMs)
    for (const [name, distanceMs] of [['Before', -60_000] as const, ['After', 60_000] as const]) {
      const raw = Buffer.from(`From: ${name} <x@example.net>\r\nTo: ${ADDRESS}\r\nSubject: Re\r\n\r\nHello.`)
      const mail = { raw, threadId: thread, labelIds: [], internalMs: atMs + distanceMs }
      world.sim.gmail.mutations(ADDRESS).arrive(mail, seededRandom(1))
    }
    const between = await done('show', thread, '--mail')
    assert.match(between, /answers {3}Clara.*\n {2}later {5}After .*\n {2}earlier {3}Before /s)
    assert.doesNotMatch(await done('list', '--category', 'payment_request'), /the offer/)
  })

  test('rework writes a draft anew three times, and refuses the fourth', async () => {
    const { thread } = await threadOf(QUESTION)
    for (const round of [1, 2, 3]) {
      await done('rework', thread, `Change ${round}`)
      assert.equal((await threadOf(QUESTION)).reworks, round)
      assert.match(await done('show', thread), new RegExp(`Change ${round}`))
    }
    assert.deepEqual(labelsOn(thread), ['🤖 AI/Action Required'])
    const asked = world.sim.models.counts.calls
    const { code, stderr } = await assist('rework', thread, 'Change 4')
    assert.equal(code, 2)
    assert.match(stderr, /reworked 3 times already/)
    assert.equal(world.sim.models.counts.calls, asked)
  })

  test('reclassify moves a thread, and undo takes it back', async () => {
    const { thread } = await threadOf(CONTRACT)
    await done('reclassify', thread, 'waiting')
    assert.deepEqual(labelsOn(thread), ['🤖 AI/Waiting'])
    const items = await json<Event[]>('events', thread)
    const moved = items.find(({ what }) => what === 'corrected')!
    assert.ok(moved.canUndo)
    await done('undo', String(moved.id))
    assert.deepEqual(labelsOn(thread), ['🤖 AI/Action Required'])
    assert.equal((await assist('undo', String(moved.id))).code, 2)
  })

  test('examples are what was moved and not taken back: each can be switched off and forgotten', async () => {
    assert.deepEqual(await json('examples', 'list'), [])
    const { thread } = await threadOf(CONTRACT)
    await done('reclassify', thread, 'action_required')
    const [one] = await json<{ id: number; isOn: boolean; category: string }[]>('examples', 'list')
    assert.deepEqual([one!.isOn, one!.category], [true, 'action_required'])
    await done('examples', 'off', String(one!.id))
    assert.match(await done('examples', 'list'), /off\s+action_required/)
    await done('examples', 'remove', String(one!.id))
    assert.deepEqual(await json('examples', 'list'), [])
    assert.equal((await assist('examples', 'remove', String(one!.id))).code, 2)
  })

  test('classify sorts again, and draft writes one where none was wanted', async () => {
    const { thread } = await threadOf('Lunch on Thursday?')
    const asked = world.sim.models.counts.calls
    await done('classify', thread)
    assert.ok(world.sim.models.counts.calls > asked)
    const invoice = await threadOf('Invoice 2026-1147')
    await done('draft', invoice.thread, '--instruction', 'Ask for a month more')
    assert.deepEqual(labelsOn(invoice.thread), ['🤖 AI/Outbox'])
    assert.match(await done('show', invoice.thread), /Ask for a month more/)
    assert.equal((await assist('draft', 'no-such-thread')).code, 2)
  })

  test('a rule is tried over past mail before it is switched on', async () => {
    const [rule] = await json<{ isOn: boolean }[]>('rules', 'list')
    assert.equal(rule!.isOn, false)
    await done('rules', 'add', 'payment_request', '--from', '*@gauges.example')
    const items = await json<{ id: number; from: string }[]>('rules', 'list')
    const added = items.find(({ from }) => from === '*@gauges.example')!
    assert.match(
      await done('rules', 'try', String(added.id)),
      /it fits 1, and would sort 1 of them otherwise/,
    )
    await done('rules', 'on', String(added.id))
    arrive({ ...LETTERS[3]!, subject: 'The pump again' }, 50)
    await done('sync')
    assert.equal((await threadOf('The pump again')).category, 'payment_request')
    await done('rules', 'change', String(added.id), '--from', '', '--subject', 'pump', '--category', 'fyi')
    const [changed] = (
      await json<{ id: number; from: string | null; subject: string; category: string }[]>('rules', 'list')
    ).filter(({ id }) => id === added.id)
    assert.deepEqual([changed!.from, changed!.subject, changed!.category], [null, 'pump', 'fyi'])
    assert.equal((await assist('rules', 'change', String(added.id), '--subject', '')).code, 2)
    await done('rules', 'remove', String(added.id))
  })

  test('import and export carry the settings, route-test tells the way, and runs what an agent did', async () => {
    const file = join(world.home, 'settings.toml')
    const toml = [
      '[[routing]]',
      'name = "shop"',
      'profile = "helper"',
      'match = { sender_domain = "shop.example" }',
      '[[profiles]]',
      'name = "helper"',
      'tools = ["apply_label"]',
    ]
    writeFileSync(file, toml.join('\n'))
    await done('import', file)
    assert.match(await done('export'), /sender_domain = "?\[?.*shop\.example/)
    assert.match(await done('route-test', '--from', 'a@shop.example'), /goes to the agent helper/)
    assert.match(await done('route-test', '--from', 'a@else.example'), /sorted like all mail/)
    arrive({ from: 'Shop <a@shop.example>', subject: 'Parcel 7', text: 'Where is it?' }, 51)
    await done('sync')
    const items = await json<{ id: number; status: string }[]>('runs')
    assert.equal(items[0]!.status, 'completed')
    assert.match(await done('runs', String(items[0]!.id)), /helper: completed/)
    writeFileSync(file, 'styles = 3')
    assert.equal((await assist('import', file)).code, 2)
  })

  test('costs, events and the briefing add up what was done', async () => {
    assert.match(await done('costs'), /simulated-model/)
    assert.match(await done('events'), /You moved it to Waiting/)
    assert.match(await done('briefing'), /inbox 10 = \d+ classified/)
  })

  test('what is said wrongly is refused with what to do, and changes nothing', async () => {
    const { thread } = await threadOf(QUESTION)
    const file = join(world.home, 'wrong.toml')
    const wrong: [toml: string, told: RegExp][] = [
      [
        '[[routing]]\nname = "x"\nprofile = "helper"\nmatch = { sender_domian = "a.example" }',
        /routing\.0\.match: .*sender_domian/,
      ],
      ['[[styles]]\nname = ""', /styles\.0\.name: /],
      ['name = "Ann"\nstyles = [', /line 2/],
      [
        '[[routing]]\nname = "x"\nprofile = "nobody"\nmatch = { all = true }',
        /rule x names the agent nobody, .*no profile/,
      ],
    ]
    for (const [toml, told] of wrong) {
      writeFileSync(file, toml)
      const { code, stderr } = await assist('import', file)
      assert.equal(code, 2, stderr)
      assert.match(stderr, told)
    }
    for (const args of [
      ['events', 'no-such-thread'],
      ['rework', thread, '  '],
      ['rules', 'add', 'fyi', '--from', ''],
    ]) {
      const { code, stderr } = await assist(...args)
      assert.equal(code, 2, `${args.join(' ')}: ${stderr}`)
      assert.doesNotMatch(stderr, /too_small|--debug/)
    }
    assert.match(await done('route-test', '--from', 'a@shop.example'), /goes to the agent helper/)
  })

  test('a model that refuses is told with what it keeps from being written, and the next sync tries again', async () => {
    world.env.TIDEMARK_MODELS_MODEL = 'no-such-model'
    world.env.TIDEMARK_ASSIST_MODEL_WAIT_MINUTES = '0'
    arrive({ ...LETTERS[0]!, subject: 'Is there a draft?' }, 60)
    const { code, stdout, stderr } = await assist('sync')
    assert.equal(code, 3, stdout + stderr)
    assert.match(stdout + stderr, /1 draft is not written: .*model_not_found/)
    assert.match((await assist('status')).stdout, /to come {3}1 draft is not written/)
    world.env.TIDEMARK_MODELS_MODEL = 'simulated-model'
    await done('sync')
    assert.equal((await threadOf('Is there a draft?')).status, 'drafted')
    assert.doesNotMatch(await done('status'), /not written|problem/)
  })

  test('off leaves the mailbox alone', async () => {
    await done('off', ADDRESS)
    const { code, stderr } = await assist('status', '--account', ADDRESS)
    assert.deepEqual([code, /tidemark assist onboard/.test(stderr)], [2, true], stderr)
    arrive({ ...LETTERS[5]!, subject: 'Nobody looks' }, 52)
    await assist('sync')
    const items = await json<Thread[]>('list')
    assert.ok(!items.some(({ subject }) => subject === 'Nobody looks'))
    const sent = [...world.sim.gmail.mailbox(ADDRESS).dump()].filter(({ labels }) => labels.includes('SENT'))
    assert.deepEqual(sent, [])
  })
})
