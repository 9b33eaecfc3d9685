/** A team of two with documents in the index: what each may see, and what both share. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { OpenRuntime } from '../../app/runtime.ts'
import { systemClock } from '../../base/clock.ts'
import { TOKEN_BYTES, tokenText, type User } from '../../ledger/users.ts'
import { openRuntime } from '../../runtime/runtime.ts'
import type { NewDocument } from '../../search/contract.ts'
import { catalog } from '../catalog.ts'
import { apps } from '../registry.ts'

export const MODEL = 'openai:letters'
const DIMS = 26

/** Counts letters: an embedding service as far as this is concerned. */
export const letterService = async (_url: string, init?: RequestInit): Promise<Response> => {
  const { input } = JSON.parse(String(init?.body)) as { input: string[] }
  const data = input.map((text, index) => {
    const embedding = Array.from({ length: DIMS }, () => 0.01)
    for (const letter of text.toLowerCase()) {
      const at = letter.charCodeAt(0) - 97
      if (at >= 0 && at < DIMS) embedding[at]! += 1
    }
    return { index, embedding }
  })
  return Response.json({ data })
}

export type SearchWorld = {
  runtime: OpenRuntime
  home: string
  ann: User
  bob: User
  tokens: { ann: string; bob: string }
  publish(document: TestDocument): Promise<number>
  close(): Promise<void>
}

export type TestDocument = {
  ref: string
  title: string
  text: string
  /** By whom it is seen, as principals. */
  seenBy: readonly string[]
  source?: string
  type?: NewDocument['type']
  folders?: readonly string[]
  modifiedAtMs?: number
  /** Its parts are rows of this sheet, and no pages. */
  sheet?: string
}

export const ANNS = 'gmail:ann@example.com'
export const BOBS = 'gmail:bob@example.com'

export async function openSearchWorld(
  options: { search?: object; home?: string } = {},
): Promise<SearchWorld> {
  const home = options.home ?? mkdtempSync(join(tmpdir(), 'tidemark-search-'))
  const search = { embedding: 'openai', url: 'http://127.0.0.1:9/v1', model: 'letters', dims: DIMS }
  const config = catalog.parse({ search: { ...search, ...options.search } })
  const runtime = await openRuntime({
    config,
    home,
    env: {},
    role: 'all',
    apps,
    fetch: letterService as never,
  })
  const { users, accounts } = runtime
  const people: User[] = []
  const tokens: string[] = []
  for (const [at, name] of ['ann', 'bob'].entries()) {
    const known = await users.find(name)
    const user = known ?? (await users.add({ name, role: 'member' }))
    const token = tokenText(new Uint8Array(TOKEN_BYTES).fill(at + 1))
    if (!known) {
      await users.addToken(user.id, { label: 'test', token })
      const sealed = new Uint8Array([1])
      await accounts.add({
        service: 'gmail',
        name: `${name}@example.com`,
        settings: {},
        sealed,
        userId: user.id,
      })
    }
    people.push(user)
    tokens.push(token)
  }
  return {
    runtime,
    home,
    ann: people[0]!,
    bob: people[1]!,
    tokens: { ann: tokens[0]!, bob: tokens[1]! },
    publish: (document) => publish(runtime, document),
    async close() {
      await runtime.close()
      rmSync(home, { recursive: true, force: true })
    },
  }
}

async function publish({ search, ledger }: OpenRuntime, document: TestDocument): Promise<number> {
  const index = await search.open()
  await index.prepare()
  const { ref, title, text, seenBy, source = 'drive', type = 'document', folders = ['Team'] } = document
  const { sheet } = document
  return ledger.driver.transaction(async (tx) => {
    const id = await index.publish(tx, {
      source,
      ref,
      title,
      type,
      mimeType: 'text/plain',
      owner: 'ann@example.com',
      people: [],
      folders,
      url: `https://drive.example.com/${ref}`,
      createdAtMs: null,
      modifiedAtMs: document.modifiedAtMs ?? systemClock.now(),
      sizeBytes: text.length,
      version: '1',
      content: {
        key: `${title}\0${text}`,
        chunks: text.split('\n\n').map((part, n) => ({
          n,
          text: part,
          headings: [],
          place:
            sheet === undefined
              ? { kind: 'page', page: n + 1 }
              : { kind: 'rows', sheet, first: n + 1, last: n + 1 },
        })),
        isTruncated: false,
      },
    })
    for (const principal of seenBy) {
      const grant = { kind: 'reader', via: 'shared with the team', generation: 1, expiresAtMs: null } as const
      await index.grant(tx, { source, ref }, principal, grant)
    }
    return id
  })
}
