/** Tools that look: into everything that was kept, with the eyes of the account's owner, and into conversations. */
import { oneLine } from '../../../../app/plain-text.ts'
import type { Clock } from '../../../../base/clock.ts'
import type { Hit, IndexReader, Marked, Reader } from '../../../../search/contract.ts'
import type { ContextPassage, VisibleMessage } from '../../contract.ts'
import { ACTION_ARGUMENTS } from '../../guard/actions.ts'
import { cut } from '../fence.ts'
import { type AgentTool, defineTool, ToolRefusal } from '../tool.ts'

const HITS_MAX = 5
const CHUNKS_MAX = 2
const PASSAGE_CHARS_MAX = 2_000
const MESSAGES_MAX = 20
const MESSAGE_CHARS_MAX = 4_000
const TIMEOUT_MS = 30_000

export type ArchiveParts = {
  clock: Clock
  /** Whose mail it is. */
  account: string
  search: () => Promise<Pick<IndexReader, 'search' | 'read'>>
  /** With whose eyes; asked for with each call, so that what was taken away is gone with the next. */
  reader: () => Promise<Reader>
}

export function searchArchive({ clock, account, search, reader }: ArchiveParts): AgentTool {
  return defineTool('search_archive', {
    description: "Searches the owner's mail, files and documents, and gives the best passages.",
    input: ACTION_ARGUMENTS.search_archive,
    effect: 'none',
    timeoutMs: TIMEOUT_MS,
    run: async ({ query }, { signal }) => {
      const [index, eyes] = await Promise.all([search(), reader()])
      const nowMs = clock.now()
      const { hits } = await index.search({ text: query, reader: eyes, limit: HITS_MAX, nowMs, signal })
      const context: ContextPassage[] = []
      for (const hit of hits) context.push(await passageOf(hit, index, eyes))
      if (context.length === 0) return { text: 'Nothing was found.' }
      const quote = context.map(({ title, text }, n) => `${n + 1}. ${title}\n${text}`).join('\n\n')
      const threadIds = foundThreads(context, account)
      const ids = threadIds.length === 0 ? '' : ` Conversations that can be read: ${threadIds.join(', ')}.`
      return { text: `${context.length} found.${ids}`, quote, context }
    },
  })
}

async function passageOf(
  hit: Hit,
  index: Pick<IndexReader, 'read'>,
  reader: Reader,
): Promise<ContextPassage> {
  const fromChunk = hit.citation?.chunk
  const read =
    fromChunk === undefined ? undefined : await index.read(hit.id, reader, { fromChunk, limit: CHUNKS_MAX })
  const text = read?.chunks.map((chunk) => chunk.text).join('\n') || plain(hit.snippet)
  const day = hit.modifiedAtMs === null ? '' : ` (${new Date(hit.modifiedAtMs).toISOString().slice(0, 10)})`
  return {
    title: `${hit.source}: ${oneLine(plain(hit.title), 200)}${day}`,
    source: hit.source,
    documentId: hit.id,
    url: hit.url,
    text: cut(text, PASSAGE_CHARS_MAX),
  }
}

/** The ids of mails of this mailbox, by the addresses at which they are opened: the run may read them. */
export function foundThreads(context: readonly ContextPassage[], account: string): string[] {
  return context.flatMap(({ source, url: address }) => {
    const url = source === 'mail' ? URL.parse(address) : null
    if (url?.hostname !== 'mail.google.com' || url.searchParams.get('authuser') !== account) return []
    return /^#all\/([\w-]{1,64})$/.exec(url.hash)?.[1] ?? []
  })
}

function plain(marked: Marked): string {
  return marked.map(({ text }) => text).join('')
}

export type ThreadParts = {
  /**
   * Of the account's own mailbox, and of no other, by its id or that of a message in it; undefined where there is none.
   */
  readThread: (id: string, signal: AbortSignal) => Promise<readonly VisibleMessage[] | undefined>
}

export function readThread({ readThread: read }: ThreadParts): AgentTool {
  return defineTool('read_thread', {
    description: "Reads a conversation of the owner's mailbox by its id.",
    input: ACTION_ARGUMENTS.read_thread,
    effect: 'none',
    timeoutMs: TIMEOUT_MS,
    run: async ({ threadId }, { signal }) => {
      const messages = await read(threadId, signal)
      if (!messages || messages.length === 0) {
        throw new ToolRefusal('thread-unknown', 'There is no such conversation in this mailbox.')
      }
      const shown = messages.filter(({ isDraft }) => !isDraft).slice(-MESSAGES_MAX)
      const quote = shown.map(messageText).join('\n\n')
      const title = `mail: ${oneLine(shown[0]?.subject ?? '', 200)}`
      const passage = { title, source: 'mail', documentId: 0, url: '', text: cut(quote, PASSAGE_CHARS_MAX) }
      return { text: `${shown.length} messages.`, quote, context: [passage] }
    },
  })
}

export function messageText({ from, subject, sentAtMs, newText }: VisibleMessage): string {
  const day = new Date(sentAtMs).toISOString().slice(0, 16).replace('T', ' ')
  const head = `From: ${oneLine(from.name, 100)} <${oneLine(from.address, 320)}>\nDate: ${day}\nSubject: ${oneLine(subject, 300)}`
  return `${head}\n\n${cut(newText, MESSAGE_CHARS_MAX)}`
}
