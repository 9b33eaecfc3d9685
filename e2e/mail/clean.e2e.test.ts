import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { cleanMail } from '../../src/apps/mail/cli/clean.ts'
import { seededRandom } from '../../src/base/random.ts'
import { createContext } from '../../src/cli/context.ts'
import { Output } from '../../src/cli/output/output.ts'
import { GMAIL_SCOPES } from '../../src/cloud/gmail/auth.ts'
import { withArchive } from './oracle.ts'
import { ADDRESS, type World, worldsOf } from './world.ts'

const { syncedWorld } = worldsOf()

type Run = { id: number; planned: number; done: number; refused: number; state: string; undo: string | null }

/** Everything in the mailbox by its id: hash, time and labels. */
function mailboxOf(world: World): Map<string, string> {
  const messages = [...world.sim.gmail.mailbox(ADDRESS).dump()].filter(({ deleted }) => !deleted)
  return new Map(
    messages.map((one) => [one.id, `${one.sha256()} ${one.internalMs} ${[...one.labels].sort()}`]),
  )
}

/** What ids stand for, apart from the ids: a message that was inserted again has another. */
function contentsOf(world: World, part: 'bytes' | 'seconds'): string[] {
  return [...world.sim.gmail.mailbox(ADDRESS).dump()]
    .filter(({ deleted }) => !deleted)
    .map((one) => {
      const labels = [...one.labels].sort().join()
      return part === 'bytes' ? `${one.sha256()} ${labels}` : `${Math.floor(one.internalMs / 1000)} ${labels}`
    })
    .sort()
}

async function lastRun(world: World): Promise<Run> {
  const { stdout } = await world.run('mail', 'clean-runs', '--json')
  return (JSON.parse(stdout) as Run[])[0]!
}

const KILLS = 3

/** Runs a command, killing it again and again, and then to its end; `again` is what goes on with it. */
async function killedThenDone(
  world: World,
  first: readonly string[],
  again: readonly string[],
): Promise<{ code: number | null; stderr: string }> {
  const random = seededRandom(5)
  let args = first
  for (let kills = 0; kills < KILLS; kills++) {
    const ended = await world.killAfter(args, 1 + Math.floor(random() * 14))
    if (ended) return ended
    if (await lastRun(world)) args = again
  }
  return world.run(...args)
}

describe('mail clean', () => {
  test('moves exactly the old ones to the trash, killed again and again, and undo brings all labels back', async () => {
    const world = await syncedWorld({ messages: 200, seed: 21 })
    const before = mailboxOf(world)
    const args = ['mail', 'clean', '--older-than', '2y', '--action', 'trash']
    const dry = await world.run(...args, '--dry-run', '--json')
    assert.equal(dry.code, 0, dry.stderr)
    const survey = JSON.parse(dry.stdout) as {
      proven: { messages: number; bytes: number }
      freedBytes: number
    }
    assert.ok(survey.proven.messages > 20, dry.stdout)
    assert.equal(survey.freedBytes, survey.proven.bytes)
    assert.deepEqual(mailboxOf(world), before, 'a dry run changes nothing')

    const ended = await killedThenDone(world, args, ['mail', 'clean', '--resume', '--yes'])
    // Killed between its end and its last word, there is nothing left to resume.
    assert.ok(ended.code === 0 || /No clean-up is unfinished/.test(ended.stderr), ended.stderr)
    const run = await lastRun(world)
    assert.deepEqual([run.state, run.done, run.refused], ['done', survey.proven.messages, 0])
    const cutoffMs = Date.now() - 2 * 365.25 * 86_400_000
    let trashed = 0
    for (const { id, labels, internalMs } of world.sim.gmail.mailbox(ADDRESS).dump()) {
      const isNew = labels.includes('TRASH') && !before.get(id)!.includes('TRASH')
      if (isNew) trashed += 1
      if (isNew) assert.ok(internalMs < cutoffMs + 2 * 86_400_000)
    }
    assert.equal(trashed, run.done)

    const undo = ['mail', 'clean-undo', String(run.id)]
    const undone = await killedThenDone(world, undo, undo)
    assert.equal(undone.code, 0, undone.stderr)
    assert.deepEqual(mailboxOf(world), before)
    const synced = await world.run('mail', 'sync', '--json')
    assert.equal(synced.code, 0, synced.stderr)
    await withArchive(world, async (archive) => {
      for (const { id, labels } of world.sim.gmail.mailbox(ADDRESS).dump()) {
        assert.deepEqual([...(await archive.message(id))!.labelIds].sort(), [...labels].sort())
      }
    })
  })

  test('deletes for good only when told so twice, and undo inserts the same bytes, once each', async () => {
    const world = await syncedWorld({ messages: 100, seed: 22 })
    const bytes = contentsOf(world, 'bytes')
    const args = ['mail', 'clean', '--older-than', '1y', '--action', 'delete']
    for (const flags of [[], ['--yes'], ['--permanently']]) {
      const refused = await world.run(...args, ...flags)
      assert.equal(refused.code, 2, refused.stderr)
    }
    assert.equal(world.sim.gmail.mailbox(ADDRESS).deleted.size, 0)
    const go = [...args, '--permanently', '--yes', '--query', '-in:drafts']
    const ended = await killedThenDone(world, go, ['mail', 'clean', '--resume', '--yes'])
    assert.ok(ended.code === 0 || /No clean-up is unfinished/.test(ended.stderr), ended.stderr)
    const run = await lastRun(world)
    assert.ok(run.done > 20)
    assert.equal(world.sim.gmail.mailbox(ADDRESS).deleted.size, run.done)

    const undo = ['mail', 'clean-undo', String(run.id)]
    const undone = await killedThenDone(world, undo, undo)
    assert.equal(undone.code, 0, undone.stderr)
    assert.deepEqual(contentsOf(world, 'bytes'), bytes)
    const again = await world.run(...undo)
    assert.equal(again.code, 0, again.stderr)
    assert.deepEqual(contentsOf(world, 'bytes'), bytes, 'a second undo does nothing')
  })

  test('undo of a deletion restores the times of arrival if told so, and says what that changes', async () => {
    const world = await syncedWorld({ messages: 60, seed: 23 })
    const times = contentsOf(world, 'seconds')
    const query = ['--query', '-in:drafts']
    const deleted = await world.run(
      'mail',
      'archive',
      '--older-than',
      '1y',
      '--action',
      'delete',
      '--permanently',
      '--yes',
      ...query,
    )
    assert.equal(deleted.code, 0, deleted.stderr)
    const undone = await world.run('mail', 'clean-undo', '1', '--keep-dates')
    assert.equal(undone.code, 0, undone.stderr)
    assert.match(
      undone.stderr,
      /inserted again, under new ids and with a Date header that says when they arrived/,
    )
    assert.match(undone.stdout, /: its Date header was rewritten/)
    assert.deepEqual(contentsOf(world, 'seconds'), times)
  })

  test('an account without the permission is told so before anything happens', async () => {
    const world = await syncedWorld({ messages: 40, seed: 24 })
    await world.connect(ADDRESS, [GMAIL_SCOPES.modify])
    const args = ['mail', 'clean', '--older-than', '1d', '--action', 'delete', '--permanently', '--yes']
    const refused = await world.run(...args)
    assert.equal(refused.code, 1)
    assert.match(refused.stderr, /was not given the permission to delete/)
    assert.match(refused.stderr, /account add gmail --full/)
    assert.equal(await lastRun(world), undefined)
    assert.equal(world.sim.gmail.mailbox(ADDRESS).deleted.size, 0)
  })

  test('Ctrl-C stops it, a second run is refused meanwhile, and --resume goes on', async () => {
    const world = await syncedWorld({ messages: 100, seed: 25 })
    // The first change of Gmail is never answered: the run cannot be over before it is stopped.
    world.sim.faults.set({ rules: [{ do: 'stall', ms: null, methods: ['messages.batchModify'] }] })
    const args = ['mail', 'clean', '--older-than', '1d']
    const { child, ended } = world.start(args)
    let isOver = false
    void ended.finally(() => {
      isOver = true
    })
    const stalled = (): number => world.sim.log.counts().faults.stalled ?? 0
    while (!isOver && stalled() === 0) await new Promise((resolve) => setTimeout(resolve, 5))
    child.kill('SIGINT')
    const stopped = await ended
    assert.equal(stopped.code, 1, stopped.stderr)
    assert.match(stopped.stderr, /Go on with: tidemark mail clean --resume 1/)
    world.sim.faults.clear()
    const second = await world.run(...args)
    assert.equal(second.code, 2)
    assert.match(second.stderr, /The clean-up 1 of ann@example.com is not finished/)
    const resumed = await world.run('mail', 'clean', '--resume', '1', '--json')
    assert.equal(resumed.code, 0, resumed.stderr)
    const run = JSON.parse(resumed.stdout) as Run
    assert.equal(run.state, 'done')
    assert.equal(run.done + run.refused, run.planned)
    assert.ok(run.done > 0)
  })

  test('a deletion goes on only when exactly its number of messages is typed', async () => {
    const world = await syncedWorld({ messages: 60, seed: 27 })
    const written: string[] = []
    const typing = async (answer: (question: string) => string): Promise<void> => {
      const stream = { write: (text: string) => written.push(text) > 0 }
      const context = createContext({ env: world.env, output: new Output(stream, stream) })
      const lines = () => ({
        next: async (question: string) => {
          assert.match(written.at(-1)!, /Only mail that this finds: NOT is:starred\n/)
          return answer(question)
        },
        close: () => {},
      })
      const options = { action: 'delete', olderThan: '1d', permanently: true, query: '-is:starred' } as const
      await cleanMail(context, options, { isTerminal: true, lines })
    }
    const { deleted } = world.sim.gmail.mailbox(ADDRESS)
    await assert.rejects(
      typing(() => 'delete messages'),
      { code: 'confirmation-needed' },
    )
    assert.deepEqual([deleted.size, (await lastRun(world)).state], [0, 'abandoned'])
    await typing((question) => /"(.*)"/.exec(question)![1]!)
    const run = await lastRun(world)
    assert.deepEqual([run.state, run.done], ['done', deleted.size])
    assert.ok(run.done > 0)
  })

  test('wrong use is refused with what to do', async () => {
    const world = await syncedWorld({ messages: 30, seed: 26 })
    const wrong: [string[], RegExp][] = [
      [['mail', 'clean'], /How old/],
      [['mail', 'clean', '--older-than', '6m'], /Months are written mo/],
      [['mail', 'clean', '--older-than', '2y', '--query', 'from:('], /query/i],
      [['mail', 'clean', '--older-than', '2y', '--label', 'no such'], /no label/],
      [['mail', 'clean', '--older-than', '2y', '--account', 'bob@example.com'], /no mail account/],
      [['mail', 'clean', '--resume', '7'], /no clean-up 7/],
      [['mail', 'clean-undo', '7'], /no clean-up 7/],
      [['mail', 'clean-runs', 'x'], /not the number/],
    ]
    for (const [args, expected] of wrong) {
      const ended = await world.run(...args)
      assert.equal(ended.code, 2, `${args.join(' ')}: ${ended.stderr}`)
      assert.match(ended.stderr, expected)
    }
  })
})
