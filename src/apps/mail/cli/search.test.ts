import assert from 'node:assert/strict'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { ESCAPES } from '../../../cli/jobs/jobs.suite.ts'
import { type MailHome, mail, mailHome } from './search.suite.ts'

const AMY = 'amy@example.com'
const BOB = 'bob@example.com'

const BOLD = '\u001b[1m'
const PLAIN = '\u001b[0m'

type HitJson = {
  account: string
  id: string
  subject: string
  date: string
  labels: string[]
  excerpt: object[]
}
type PageJson = {
  understood: { account: string; query: string }[]
  hits: HitJson[]
  next: string | null
  unsearched: { account: string; shard: string }[]
}

const letter = (subject: string, body: string, from = 'Carol Jones <carol@example.com>'): string =>
  `From: ${from}\nTo: ${AMY}\nSubject: ${subject}\n\n${body}\n`

describe('mail search', () => {
  let home: MailHome
  before(async () => {
    home = await mailHome([
      {
        account: AMY,
        labels: [
          { id: 'INBOX', name: 'INBOX' },
          { id: 'Label_7', name: 'Big Trips' },
        ],
        messages: [
          ...Array.from({ length: 13 }, (_, n) =>
            mail(`a${n}`, {
              atMs: Date.UTC(2010 + n, 0, 1),
              raw: letter(`plan ${n}`, 'the yearly plan'),
              labelIds: ['INBOX'],
            }),
          ),
          mail('hostile', {
            atMs: Date.UTC(2023, 5, 1),
            raw: letter(
              `evil ${ESCAPES}`,
              `before ${ESCAPES} needle after`,
              `"${ESCAPES}" <evil@example.com>`,
            ),
            labelIds: ['Label_7'],
          }),
          mail('mine', {
            atMs: Date.UTC(2023, 6, 1),
            raw: letter('from me', 'Grüße von Müller', AMY),
            labelIds: ['SENT'],
          }),
        ],
        changes: [{ id: 'a3', historyId: '5', deletedAtMs: Date.UTC(2024, 0, 1) }],
      },
      {
        account: BOB,
        messages: Array.from({ length: 5 }, (_, n) =>
          mail(`b${n}`, { atMs: Date.UTC(2015 + n, 6, 1), raw: letter(`plan of bob ${n}`, 'another plan') }),
        ),
      },
    ])
  })
  after(() => home.remove())

  const search = (...args: string[]): Promise<PageJson> => home.json<PageJson>('mail', 'search', ...args)
  const ids = async (...args: string[]): Promise<string[]> => (await search(...args)).hits.map(({ id }) => id)

  test('finds mail of all accounts, newest first', async () => {
    const { hits, next, unsearched } = await search('plan', '--limit', '100')
    assert.equal(hits.length, 18)
    assert.deepEqual(
      hits.map(({ date }) => date),
      hits
        .map(({ date }) => date)
        .sort()
        .reverse(),
    )
    assert.deepEqual(new Set(hits.map(({ account }) => account)), new Set([AMY, BOB]))
    assert.equal(next, null)
    assert.deepEqual(unsearched, [])
  })

  test('pages over several accounts are complete and in order, by date and by rank', async () => {
    for (const order of [[], ['--rank']]) {
      const all = await ids('plan', '--limit', '100', ...order)
      for (const limit of [4, 7]) {
        const seen: string[] = []
        let cursor: string[] = []
        for (let page = 0; page < 30; page++) {
          const { hits, next } = await search('plan', '--limit', String(limit), ...order, ...cursor)
          seen.push(...hits.map(({ id }) => id))
          if (next === null) break
          cursor = ['--cursor', next]
        }
        if (order.length === 0) assert.deepEqual(seen, all)
        else assert.deepEqual([...seen].sort(), [...all].sort())
      }
    }
  })

  test('one account alone, its labels by name, and me', async () => {
    assert.equal((await ids('plan', '--account', BOB)).length, 5)
    assert.deepEqual(await ids('label:big-trips'), ['hostile'])
    assert.deepEqual(await ids('label:"big trips"'), ['hostile'])
    assert.deepEqual(await ids('from:me'), ['mine'])
    assert.deepEqual(await ids('is:deleted'), ['a3'])
    assert.deepEqual((await search('id:hostile')).hits[0]?.labels, ['Big Trips'])
  })

  test('programs see the query as it was understood, for each account', async () => {
    const { understood } = await search('from:me plan -in:sent')
    assert.deepEqual(understood, [
      { account: AMY, query: `from:${AMY} AND plan AND NOT in:sent` },
      { account: BOB, query: `from:${BOB} AND plan AND NOT in:sent` },
    ])
  })

  test('several words on the command line are one query', async () => {
    assert.deepEqual(await ids('subject:plan', 'before:2010/06/01 -from:nobody'), ['a0'])
    const { stdout } = await home.run('mail', 'search', '--', '-plan', '-needle')
    assert.match(stdout, /^DATE.*\n.*\tmine\t.*\n$/)
  })

  test('excerpts show the place, as pieces', async () => {
    const { hits } = await search('muller')
    assert.deepEqual(hits[0]?.excerpt, [
      { text: 'Grüße von ', match: false },
      { text: 'Müller', match: true },
    ])
  })

  test('counts', async () => {
    const counted = await home.json<{ messages: number; bytes: number }>('mail', 'search', 'plan', '--count')
    assert.equal(counted.messages, 18)
    assert.ok(counted.bytes > 18 * 50)
    assert.match((await home.run('mail', 'search', 'plan', '--count')).stdout, /^18 messages, /)
  })

  test('tables have a row for each, and name the next page', async () => {
    const { code, stdout, stderr } = await home.run(
      'mail',
      'search',
      'plan',
      '--limit',
      '2',
      '--account',
      BOB,
    )
    assert.equal(code, 0)
    const [titles, first, second, ...rest] = stdout
      .trimEnd()
      .split('\n')
      .map((line) => line.split('\t'))
    assert.deepEqual(titles, ['DATE', 'ACCOUNT', 'ID', 'FROM', 'SUBJECT', 'EXCERPT'])
    assert.deepEqual(first?.slice(1, 5), [BOB, 'b4', 'Carol Jones', 'plan of bob 4'])
    assert.equal(second?.[2], 'b3')
    assert.deepEqual(rest, [])
    const [, more] = /^More: tidemark (.*)$/m.exec(stderr) ?? []
    const next = await home.run(...more!.split(' '))
    assert.match(next.stdout, /\tb2\t/)
  })

  test('what strangers wrote is escaped', async () => {
    for (const args of [
      ['mail', 'search', 'needle'],
      ['mail', 'search', 'needle', '--json'],
      ['mail', 'search', 'needle', '--rank'],
    ]) {
      for (const { stdout, stderr } of [await home.run(...args), await home.runOnTerminal(80, ...args)]) {
        assert.match(stdout, /needle/)
        assert.ok(!`${stdout}${stderr}`.replaceAll(BOLD, '').replaceAll(PLAIN, '').includes('\u001b'))
        assert.ok(!`${stdout}${stderr}`.includes('\u202e'))
      }
    }
  })

  test('a terminal gets two lines for each, with the words in bold', async () => {
    const { stdout } = await home.runOnTerminal(100, 'mail', 'search', 'muller')
    const [first, second] = stdout.split('\n')
    assert.match(first!, /^2023-07-01 {2}amy@example\.com +from me {2}mine amy@example\.com$/)
    assert.equal(second, `            Grüße von ${BOLD}Müller${PLAIN}`)
  })

  test('nothing found is said, with what a label may have been meant to be', async () => {
    const { code, stdout, stderr } = await home.run('mail', 'search', 'label:big-trip')
    assert.deepEqual([code, stdout], [0, ''])
    assert.match(stderr, /^No message matches\.\nNo label is called big-trip; did you mean big trips\?/)
  })

  test('a query that cannot be read ends with 2 and shows the place', async () => {
    const { code, stderr } = await home.run('mail', 'search', 'form:amy plan')
    assert.equal(code, 2)
    assert.match(stderr, /no operator form:; did you mean from:\?\.?\n {2}form:amy plan\n {2}\^/)
    const json = await home.run('mail', 'search', '(plan', '--json')
    assert.equal((JSON.parse(json.stderr) as { error: { code: string } }).error.code, 'bad-query')
  })

  test('wrong use ends with 2', async () => {
    const wrong = [
      ['plan', '--account', 'nobody@example.com'],
      ['plan', '--limit', '0'],
      ['plan', '--limit', '501'],
      ['plan', '--cursor', 'nonsense'],
      ['plan', '--cursor', Buffer.from(JSON.stringify({ [BOB]: "d_1_2020'" })).toString('base64url')],
      [],
    ]
    for (const args of wrong) {
      const { code, stdout } = await home.run('mail', 'search', ...args)
      assert.deepEqual([code, stdout], [2, ''], args.join(' '))
    }
  })

  test('the help names every operator', async () => {
    const { operators } = await import('../query/operators.ts')
    const { stdout } = await home.run('mail', 'search', '--help')
    const aliases = new Set(['size', 'newer', 'older', 'deleted'])
    for (const name of operators.keys()) assert.ok(aliases.has(name) || stdout.includes(`${name}:`), name)
  })
})

describe('mail search with a part of the archive missing', () => {
  let home: MailHome
  before(async () => {
    home = await mailHome([
      {
        account: AMY,
        messages: [2019, 2020, 2021].map((year) =>
          mail(`m${year}`, { atMs: Date.UTC(year, 0, 1), raw: letter('plan', 'the plan') }),
        ),
      },
    ])
    rmSync(join(home.archiveOf(AMY), '2020.db'))
  })
  after(() => home.remove())

  test('answers with the rest, names what is missing, and ends with 1', async () => {
    const { code, stdout, stderr } = await home.run('mail', 'search', 'plan', '--json')
    assert.equal(code, 1)
    const page = JSON.parse(stdout) as PageJson
    assert.deepEqual(
      page.hits.map(({ id }) => id),
      ['m2021', 'm2019'],
    )
    assert.deepEqual(
      page.unsearched.map(({ account, shard }) => [account, shard]),
      [[AMY, '2020']],
    )
    assert.match(stderr, /2020 of amy@example\.com could not be searched: .*2020\.db is missing/)
    const counted = await home.run('mail', 'search', 'plan', '--count')
    assert.deepEqual([counted.code, counted.stdout.split(',')[0]], [1, '2 messages'])
    const stats = await home.run('mail', 'stats')
    assert.equal(stats.code, 1)
    assert.match(stats.stdout, /2021\t1\t[\s\S]*2019\t1\t/)
    assert.match(stats.stderr, /2020\.db is missing/)
  })
})
