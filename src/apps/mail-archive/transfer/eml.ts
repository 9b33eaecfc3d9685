/** Files that are one message each. */
import { readMessageFile, type SourceItem } from './source-item.ts'

export async function* readEml(path: string): AsyncGenerator<SourceItem> {
  const read = await readMessageFile(path)
  if ('reason' in read) yield { type: 'damaged', place: path, reason: read.reason }
  else {
    const message = { id: null, threadId: null, labelNames: [], labelIds: [], arrivedMs: null }
    yield { type: 'message', place: path, ...message, ...read }
  }
}
