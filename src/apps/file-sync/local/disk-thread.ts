/** A thread that lists folders and hashes files: see threads.ts. */
import { parentPort, workerData } from 'node:worker_threads'
import { hashNow } from './content-hash.ts'
import { listFolder } from './listing.ts'
import type { Answer, Question } from './threads.ts'

const port = parentPort!
const stops = new Int32Array((workerData as { stops: SharedArrayBuffer }).stops)

port.on('message', ({ number, slot, ask }: Question) => {
  let answer: Answer
  try {
    const value =
      ask.what === 'list'
        ? listFolder(ask.path)
        : hashNow(ask.path, ask.expect, () => Atomics.load(stops, slot) === number)
    answer = { number, value }
  } catch (error) {
    const { message, code } = error as NodeJS.ErrnoException
    answer = { number, error: { message, code } }
  }
  const numbers = 'value' in answer && 'numbers' in answer.value ? answer.value.numbers : undefined
  port.postMessage(answer, numbers ? [numbers.buffer] : [])
})
