/**
 * What a draft may lean on: passages of the one search, with the eyes of the account's owner; where that finds nothing,
 * or cannot be asked, mail that Gmail's own search finds. It helps a draft and never fails one: what goes wrong here is told and left out.
 */
import { asTidemarkError } from '../../base/errors.ts'
import type { ContextPassage, VisibleMessage } from './contract.ts'
import type { Conversation } from './conversation.ts'
import { contextPrompt, contextQueriesOf, contextSchema } from './prompts.ts'
import { visibleMessage } from './text/visible.ts'

const HITS_PER_QUERY = 3
const PASSAGES_MAX = 5
const PASSAGE_CHARS_MAX = 1_500
const MAILS_MAX = 2
const CHUNKS_READ = 2

export async function contextFor(
  talk: Conversation,
  answered: VisibleMessage,
  { asksModel }: { asksModel: boolean },
): Promise<ContextPassage[]> {
  const queries = asksModel ? await queriesFor(talk, answered) : bySubject(answered)
  const passages = await orNone(talk, () => fromArchive(talk, queries))
  return passages.length > 0 ? passages : orNone(talk, () => fromGmail(talk, queries))
}

async function orNone(talk: Conversation, look: () => Promise<ContextPassage[]>): Promise<ContextPassage[]> {
  try {
    return await look()
  } catch (thrown) {
    if (talk.signal.aborted) throw thrown
    const { message } = asTidemarkError(thrown)
    talk.kinds.note('context-failed', `a draft is written without what could not be searched: ${message}`)
    return []
  }
}

/** Asked of the model; where it has none, the subject will do. */
async function queriesFor(talk: Conversation, answered: VisibleMessage): Promise<string[]> {
  const { kinds, account, signal } = talk
  try {
    const { system, prompt } = contextPrompt({ thread: talk.messages ?? [], answered })
    const answer = await kinds.models.ask({
      account: account.name,
      purpose: 'context',
      threadId: answered.threadId,
      system,
      messages: [{ role: 'user', content: prompt }],
      schema: contextSchema,
      signal,
    })
    return contextQueriesOf(answer.value ?? answer.text)
  } catch (thrown) {
    if (signal.aborted) throw thrown
    return bySubject(answered)
  }
}

function bySubject({ subject }: VisibleMessage): string[] {
  return contextQueriesOf({ queries: [subject.replace(/^\s*(?:re|aw|fwd?|wg)\s*:\s*/i, '')] })
}

async function fromArchive(talk: Conversation, queries: readonly string[]): Promise<ContextPassage[]> {
  const { kinds, account, signal } = talk
  const reader = await kinds.accounts.reader(account.name)
  const own = new Set((talk.messages ?? []).map(({ id }) => id))
  const passages = new Map<number, ContextPassage>()
  if (reader.principals.length === 0 || queries.length === 0) return []
  const search = await kinds.search()
  for (const text of queries) {
    const answer = await search.search({ text, reader, limit: HITS_PER_QUERY, nowMs: talk.nowMs, signal })
    if (!answer.answered) continue
    for (const hit of answer.hits) {
      // The conversation itself is in front of the model already.
      if (
        passages.has(hit.id) ||
        passages.size >= PASSAGES_MAX ||
        [...own].some((id) => hit.ref.includes(id))
      )
        continue
      const page = { fromChunk: hit.citation?.chunk ?? 0, limit: CHUNKS_READ }
      const document = await search.read(hit.id, reader, page)
      if (!document || document.chunks.length === 0) continue
      passages.set(hit.id, {
        title: `${hit.source}: ${document.title}`,
        source: hit.source,
        documentId: hit.id,
        url: document.url,
        text: document.chunks
          .map((chunk) => chunk.text)
          .join('\n')
          .slice(0, PASSAGE_CHARS_MAX),
      })
    }
  }
  return [...passages.values()]
}

async function fromGmail(talk: Conversation, queries: readonly string[]): Promise<ContextPassage[]> {
  const { account, signal } = talk
  const passages: ContextPassage[] = []
  for (const query of queries.slice(0, 1)) {
    const page = await account.client.listIds({
      query: `${query} -in:drafts`,
      includeSpamTrash: false,
      maxResults: MAILS_MAX * 2,
      signal,
    })
    const others = page.ids.filter(({ threadId }) => threadId !== talk.record.thread).slice(0, MAILS_MAX)
    for (const { id } of others) {
      const mail = visibleMessage(await account.client.message(id, { signal }))
      passages.push({
        title: `mail: ${mail.subject}`,
        source: 'gmail',
        documentId: 0,
        url: '',
        text: mail.newText.slice(0, PASSAGE_CHARS_MAX),
      })
    }
  }
  return passages
}
