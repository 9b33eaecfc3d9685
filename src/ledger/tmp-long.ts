import fc from 'fast-check'
import { Desk } from './desk.suite.ts'
import { MOVE_NAMES, type Move, World } from './frontier-model.suite.ts'
import { memoryHome } from './home.suite.ts'
const home = memoryHome()
const number = fc.nat({ max: 1_000 })
const OFTEN: readonly Move['what'][] = ['append','list','list','claim','claim','settle','settle','settle','seal']
const move = fc.record<Move>({ what: fc.constantFrom(...OFTEN, ...MOVE_NAMES), a: number, b: number, c: number })
const start = performance.now()
await fc.assert(fc.asyncProperty(fc.array(move, { maxLength: 150, size: 'max' }), async (moves) => {
  const desk = await Desk.open(home)
  try { const world = await World.make(desk); for (const one of moves) { await world.move(one); await world.check() } await world.finish() } finally { await desk.close() }
}), { numRuns: 1500 })
console.log('ok', Math.round(performance.now() - start))
