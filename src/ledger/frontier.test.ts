import { after, describe, test } from 'node:test'
import fc from 'fast-check'
import { MOVE_NAMES, type Move, World } from './frontier-model.suite.ts'
import { type Home, libsqlHome, memoryHome, onLibsql, postgresHome } from './home.suite.ts'
import { LedgerFixture } from './ledger-fixture.suite.ts'

const number = fc.nat({ max: 1_000 })

/** Moves that make work are more frequent than those that disturb it, or nothing would ever get far. */
const OFTEN: readonly Move['what'][] = [
  'append',
  'list',
  'list',
  'claim',
  'claim',
  'settle',
  'settle',
  'settle',
  'seal',
]
const move = fc.record<Move>({
  what: fc.constantFrom(...OFTEN, ...MOVE_NAMES),
  a: number,
  b: number,
  c: number,
})

async function happens(home: Home, moves: readonly Move[]): Promise<void> {
  const fixture = await LedgerFixture.open(home)
  try {
    const world = await World.make(fixture)
    for (const one of moves) {
      await world.move(one)
      await world.check()
    }
    await world.finish()
  } finally {
    await fixture.close()
  }
}

function frontierOn(home: Home, numRuns: number): void {
  describe(`the frontier on ${home.name}`, () => {
    after(() => home.remove())

    test('whatever happens, marks never pass unsettled segments or move back, counts add up, and every item ends once', async () => {
      const moves = fc.array(move, { maxLength: 80, size: 'max' })
      await fc.assert(
        fc.asyncProperty(moves, (list) => happens(home, list)),
        { numRuns },
      )
    })
  })
}

frontierOn(memoryHome(), 250)
frontierOn(postgresHome(), 3)
onLibsql(() => frontierOn(libsqlHome(), 3))
