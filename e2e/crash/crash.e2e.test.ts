/** The short form of the crash proof; `npm run crash` is the long one. */
import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { seededRandom } from '../../src/base/random.ts'
import { COMMIT_POINTS } from '../../src/ledger/cycle.ts'
import {
  DATABASES,
  type Database,
  freshPlace,
  type Kill,
  type Place,
  type Reference,
  surviveKills,
  undisturbed,
} from './life.ts'
import { instantLives, pointLives } from './plan.ts'
import { fateOf, itemsIn, SMALL, streamEnd } from './source.ts'

const EXTENT: Record<(typeof DATABASES)[number], { hitsEach: number; instants: number; perLife: number }> = {
  sqlite: { hitsEach: 2, instants: 10, perLife: 4 },
  postgres: { hitsEach: 1, instants: 4, perLife: 4 },
}
const SEED = 20_26

const places: Place[] = []
after(async () => {
  for (const place of places) await place.remove()
})

async function fresh(database: Database): Promise<string> {
  const place = await freshPlace(database)
  places.push(place)
  return place.url
}

test('the workload has items of every fate', () => {
  const items = SMALL.streams.flatMap((stream) => itemsIn(SMALL, stream, 0, streamEnd(SMALL)))
  assert.deepEqual([...new Set(items.map(fateOf))].sort(), [
    'gone',
    'heavy',
    'poison',
    'skipped',
    'stored',
    'told-bad',
    'told-gone',
  ])
})

const references = new Map<Database, Reference>()

for (const database of DATABASES) {
  describe(`kill -9 on ${database}`, () => {
    const random = seededRandom(SEED)
    const { hitsEach, instants, perLife } = EXTENT[database]
    const survive = async (lives: readonly Kill[][]): Promise<Kill[]> => {
      const reference = references.get(database)!
      const landed: Kill[] = []
      for (const kills of lives)
        landed.push(...(await surviveKills({ url: await fresh(database), size: SMALL, kills, reference })))
      return landed
    }

    test('an undisturbed run ends in the state that the source dictates and passes every commit point', async () => {
      const reference = await undisturbed(await fresh(database), SMALL)
      references.set(database, reference)
      assert.deepEqual(Object.keys(reference.hits).sort(), [...COMMIT_POINTS].sort())
    })

    test('at every commit point: nothing lost, nothing applied twice, no mark ahead of the truth (invariants 1, 3, 4, 5, 7)', async () => {
      const lives = pointLives(references.get(database)!, { random, hitsEach, perLife, reach: 0.4 })
      const points = (await survive(lives)).flatMap((kill) => ('point' in kill ? [kill.point] : []))
      assert.deepEqual([...new Set(points)].sort(), [...COMMIT_POINTS].sort())
    })

    test('at random instants: the final state equals that of an undisturbed run (invariant 7)', async () => {
      const lives = instantLives(references.get(database)!, { random, kills: instants, perLife })
      const landed = await survive(lives)
      assert.ok(landed.length >= instants / 2, `only ${landed.length} of ${instants} kills came in time`)
    })
  })
}

test('both databases end in the same state', () => {
  assert.deepEqual(references.get('postgres')?.state, references.get('sqlite')?.state)
})
