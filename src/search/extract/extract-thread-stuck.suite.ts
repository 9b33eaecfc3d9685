/** In the place of extract-thread.ts: does what a document's name says, as a parser might. */
import { parentPort } from 'node:worker_threads'
import type { ThreadRequest } from './extractor.ts'

export const STUCK_BUFFERS_MB = 128
const held: unknown[] = []

parentPort?.on('message', ({ input }: ThreadRequest) => {
  if (input.name === 'exit') process.exit(1)
  if (input.name === 'throw') throw new Error('a parser that gives up')
  while (input.name === 'endless') {
    // As a pattern that never comes to an end.
  }
  while (input.name === 'heap') held.push(Array(1024 * 1024).fill('x'))
  while (input.name === 'buffers' && held.length <= STUCK_BUFFERS_MB) held.push(new Uint8Array(1024 * 1024))
  while (input.name === 'buffers') {
    // Having taken so much, it goes on.
  }
  parentPort?.postMessage({ done: { kind: 'skipped', code: 'empty', reason: input.name } })
})
