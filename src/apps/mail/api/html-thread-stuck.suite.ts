/** In the place of html-thread.ts: never ends with a message that says so, and dies of another. */
import { parentPort } from 'node:worker_threads'
import type { RenderInput } from './html-renderer.ts'

parentPort!.on('message', ({ raw }: RenderInput) => {
  const text = Buffer.from(raw).toString()
  while (text === 'endless') {
    // As a pattern that never comes to an end.
  }
  if (text === 'deadly') process.exit(1)
  parentPort!.postMessage({ document: text })
})
