/** The thread that takes messages apart and makes their HTML safe: see html-renderer.ts. */
import { parentPort } from 'node:worker_threads'
import { parseMessage } from '../mime/parse.ts'
import { mailDocument } from './html.ts'
import type { RenderAnswer, RenderInput } from './html-renderer.ts'

parentPort!.on('message', ({ raw, images }: RenderInput) => {
  const { html, attachments } = parseMessage(raw)
  const answer: RenderAnswer = {
    document: html === null ? null : mailDocument({ html, attachments, images }),
  }
  parentPort!.postMessage(answer)
})
