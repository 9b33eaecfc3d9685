import assert from 'node:assert/strict'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { type MailHome, mail, mailHome } from './search.suite.ts'

const ADA = 'ada@example.com'
const BOB = 'bob@example.com'

let home: MailHome

before(async () => {
  const raw = (subject: string): string => `Subject: ${subject}\n\nFrom here on, ${subject}\n`
  home = await mailHome([
    {
      account: ADA,
      labels: [{ id: 'Label_1', name: 'Work' }],
      messages: [
        mail('17274e1a2b3c4001', { atMs: Date.UTC(2021, 0, 1), raw: raw('budget'), labelIds: ['Label_1'] }),
        mail('17274e1a2b3c4002', { atMs: Date.UTC(2022, 0, 1), raw: raw('dinner') }),
      ],
    },
    { account: BOB, messages: [] },
  ])
})

after(() => home.remove())

describe('mail export and import', () => {
  test('carry what a search finds from one account to another', async () => {
    const to = join(home.path, 'work.mbox')
    const exported = await home.run('mail', 'export', '--account', ADA, '--query', 'label:work', '--to', to)
    assert.deepEqual([exported.code, exported.stdout], [0, `1 message (41 B) written to ${to}\n`])
    assert.match(
      readFileSync(to, 'latin1'),
      /^From \d+@xxx Fri Jan 01 00:00:00 \+0000 2021\nX-Gmail-Labels: Work\n/,
    )

    const imported = await home.run('mail', 'import', to, '--account', BOB)
    assert.deepEqual(
      [imported.code, imported.stdout],
      [0, '1 message read (41 B)\n1 added, 0 known already\n'],
    )
    const again = await home.run('mail', 'import', to, '--account', BOB, '--json')
    assert.deepEqual(
      [again.code, JSON.parse(again.stdout)],
      [
        0,
        {
          account: BOB,
          read: 1,
          bytes: 41,
          added: 0,
          known: 1,
          damaged: 0,
          damagedPlaces: [],
          ignored: 0,
          ignoredPlaces: [],
          ignoredByReason: {},
        },
      ],
    )
    const found = await home.run('mail', 'search', 'is:imported', '--account', BOB, '--json')
    assert.equal(JSON.parse(found.stdout).hits.length, 1)
  })

  test('name what is damaged, and end with 3', async () => {
    const folder = join(home.path, 'some')
    mkdirSync(folder)
    writeFileSync(join(folder, 'empty.eml'), '')
    writeFileSync(join(folder, 'good.eml'), 'Subject: good\n\ngood\n')
    writeFileSync(join(folder, 'notes.txt'), 'no mail')
    const { code, stdout, stderr } = await home.run('mail', 'import', folder, '--account', BOB)
    assert.deepEqual([code, stdout], [3, '1 message read (20 B)\n1 added, 0 known already\n'])
    assert.match(stderr, /1 passed over \(1 no mail\):\n {2}.*notes\.txt: no mail/)
    assert.match(stderr, /1 damaged and skipped:\n {2}.*empty\.eml: the file is empty/)
  })

  test('need no account: mail from files has an archive of its own, or that of an address to be connected', async () => {
    const empty = await mailHome([])
    try {
      const folder = join(empty.path, 'letters')
      mkdirSync(join(folder, 'Clients'), { recursive: true })
      writeFileSync(join(folder, 'Clients/one'), 'Subject: offer\nFrom: a@b.example\n\nan offer\n')
      const imported = await empty.run('mail', 'import', folder)
      assert.deepEqual([imported.code, imported.stdout.split('\n')[1]], [0, '1 added, 0 known already'])
      assert.match(imported.stderr, /imported is an archive of its own, connected with no account/)
      const found = await empty.run('mail', 'search', 'label:Clients offer', '--json')
      assert.equal(JSON.parse(found.stdout).hits.length, 1, found.stderr)
      const again = await empty.run('mail', 'import', folder)
      assert.equal(again.stdout.split('\n')[1], '0 added, 1 known already')
      const named = await empty.run('mail', 'import', folder, '--account', ADA)
      assert.equal(named.stdout.split('\n')[1], '1 added, 0 known already')
      const bad = await empty.run('mail', 'bad', 'list')
      assert.deepEqual([bad.code, bad.stdout + bad.stderr], [0, 'No message is bad.\n'])
      const synced = await empty.run('mail', 'sync')
      assert.equal(synced.code, 2)
      assert.match(synced.stderr, /No mail account is connected/)
    } finally {
      await empty.remove()
    }
  })

  test('refuse what is unclear, and change nothing', async () => {
    const to = join(home.path, 'there')
    writeFileSync(to, 'precious')
    const wrong: [expected: RegExp, ...args: string[]][] = [
      [/several mail accounts/, 'export', '--to', join(home.path, 'x')],
      [/several mail accounts/, 'import', to],
      [/no mail account eve/, 'import', to, '--account', 'eve'],
      [/there already/, 'export', '--account', ADA, '--to', to],
      [/is a file/, 'export', '--account', ADA, '--format', 'eml', '--to', to],
      [/cannot be read/, 'import', join(home.path, 'nowhere'), '--account', ADA],
      [/no operator/, 'export', '--account', ADA, '--query', 'frmo:x', '--to', join(home.path, 'x')],
      [/required option/, 'export', '--account', ADA],
    ]
    writeFileSync(to, 'Subject: precious\n\n')
    for (const [expected, ...args] of wrong) {
      const { code, stderr } = await home.run('mail', ...args)
      assert.equal(code, 2, args.join(' '))
      assert.match(stderr, expected)
    }
    assert.equal(readFileSync(to, 'latin1'), 'Subject: precious\n\n')
  })
})
