/** A thread that reads and hashes files, all that it was asked by turns: see threads.ts. */
import { parentPort } from 'node:worker_threads'
import { hashSteps, readSteps } from './hash.ts'
import { untilPast } from './stamp.ts'
import type { Answer, Ask, Message, Value } from './threads.ts'

type Job = { number: number; steps: Generator<undefined, Value> }

const port = parentPort!
const jobs: Job[] = []
let isRunning = false

port.on('message', (message: Message) => {
  if ('stop' in message) {
    const index = jobs.findIndex(({ number }) => number === message.stop)
    const [job] = index < 0 ? [] : jobs.splice(index, 1)
    job?.steps.return({ outcome: 'gone' }) // closes its file
    return
  }
  jobs.push({ number: message.number, steps: stepsOf(message.ask) })
  if (!isRunning) {
    isRunning = true
    setImmediate(turn)
  }
})

function* stepsOf(ask: Ask): Generator<undefined, Value> {
  const { what, place, expect } = ask
  if (what === 'hash') return yield* hashSteps(place, expect)
  if (what === 'read') return yield* readSteps(place, expect)
  yield* untilPast(place.root, expect)
  return { outcome: 'past' }
}

/** One step of every job; then messages are received. */
function turn(): void {
  for (const job of jobs.splice(0)) {
    const answer = step(job)
    if (answer) port.postMessage(answer, 'value' in answer ? givenAway(answer.value) : [])
    else jobs.push(job)
  }
  isRunning = jobs.length > 0
  if (isRunning) setImmediate(turn)
}

/** What need not be copied. */
function givenAway(value: Value): ArrayBuffer[] {
  return 'bytes' in value ? [value.bytes.buffer as ArrayBuffer] : []
}

function step({ number, steps }: Job): Answer | undefined {
  try {
    const result = steps.next()
    return result.done ? { number, value: result.value } : undefined
  } catch (error) {
    const { message, code } = error as NodeJS.ErrnoException
    return { number, error: { message, code } }
  }
}
