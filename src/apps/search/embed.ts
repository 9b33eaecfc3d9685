/**
 * Gives vectors to contents that have words only: those of the newest documents first, a batch at a time, each batch
 * with its own commit. When nothing is left, what another model had left behind is given back.
 *
 * Words are published by whoever read a document, so that it is found at once; meaning follows from here. A change of the
 * model is nothing special: all contents are then without vectors of the new one, and searches go on by words and by
 * whatever is embedded already.
 */
import { z } from 'zod'
import type { AppPlace } from '../../app/runtime.ts'
import type { Search } from '../../app/search.ts'
import { asTidemarkError, TidemarkError } from '../../base/errors.ts'
import type { JobKind, Outcome, RunContext } from '../../engine/job-kind.ts'
import { defineJob } from '../../engine/kinds.ts'
import type { ContentToEmbed } from '../../search/contract.ts'
import type { Embedder } from '../../search/embed/embedder.ts'
import { dropOtherModels, embeddedShare } from '../../search/index/models.ts'

/** What it needs of a runtime. */
export type EmbedPlace = Pick<AppPlace, 'ledger' | 'search'>

const embedPayload = z.object({})
export type EmbedPayload = z.output<typeof embedPayload>

/** Of what was tried in vain: told at the end, and tried again with the next run. */
const triedSchema = z.object({ inVain: z.array(z.number()) })

const BATCH_CONTENTS = 16
/** Then others have their turn, and the next run goes on. */
const BATCHES_PER_RUN = 200
/** A content may have thousands of texts: the time that an embedder is given is for so many of them. */
const SLICE_TEXTS = 64
const SLICE_MS_MAX = 60_000
/** One after another: then it is the service that hangs, and not a content that is too much for it. */
const LATE_MAX = 3
const LATE = 'embedding-late'
const IN_VAIN_MAX = 1_000
const DROPPED_PER_COMMIT = 200
/** Behind everything that brings something new. */
const PRIORITY = -10

export function embedKind(place: EmbedPlace): JobKind<EmbedPayload> {
  return defineJob({
    kind: 'search.embed',
    payload: embedPayload,
    key: () => 'embed',
    lane: 'bulk',
    priority: PRIORITY,
    concurrency: 1,
    describe: { verb: 'embedding', noun: 'document' },
    run: (context) => embedSome(place, context),
  })
}

async function embedSome(place: EmbedPlace, context: RunContext<EmbedPayload>): Promise<Outcome> {
  const { ledger } = place
  const search = await place.search.open()
  const { embedder } = search
  if (!embedder) return { skip: 'Nothing is embedded here: search.embedding is off.', code: 'off' }
  const share = await embeddedShare(ledger, embedder.model)
  if (!share) return { skip: 'There is no index yet.', code: 'no-index' }
  if (share.embedded >= share.contents && share.others === 0)
    return { skip: 'All is embedded.', code: 'done' }
  await search.prepare()
  const checkpoint = triedSchema.safeParse(context.checkpoint)
  const inVain = new Set(checkpoint.success ? checkpoint.data.inVain : [])
  const tried: Tried = { inVain, late: 0 }
  let done = share.embedded
  for (let n = 0; n < BATCHES_PER_RUN; n++) {
    const batch = await search.withoutVectors(embedder.model, BATCH_CONTENTS, inVain)
    if (batch.length === 0) return finish(context, { model: embedder.model, inVain })
    done += await embedBatch(context, { search, embedder, batch, tried })
    context.progress({ done, total: share.contents, unit: 'items', label: embedder.model })
  }
  return { again: {}, checkpoint: { inVain: [...inVain] } }
}

/** `late`: how many in a row were not done in time. */
type Tried = { readonly inVain: Set<number>; late: number }
type Batch = { search: Search; embedder: Embedder; batch: readonly ContentToEmbed[]; tried: Tried }

/**
 * One commit for all of it; a content that the model refuses, or is not done with in time, does not keep the others from
 * being found. What ends the run comes after the commit, so that neither vectors nor what was in vain are lost with it.
 */
async function embedBatch(
  context: RunContext<EmbedPayload>,
  { search, embedder, batch, tried }: Batch,
): Promise<number> {
  const { inVain } = tried
  const vectors: { contentId: number; of: Float32Array[] }[] = []
  let failed: TidemarkError | undefined
  for (const { contentId, texts } of batch) {
    try {
      vectors.push({ contentId, of: await embedContent(context, embedder, texts) })
      tried.late = 0
    } catch (thrown) {
      if (context.signal.aborted) throw thrown
      const error = asTidemarkError(thrown)
      const isLate = error.code === LATE
      tried.late = isLate ? tried.late + 1 : 0
      const isOfContent = (isLate || error.kind === 'permanent') && inVain.size < IN_VAIN_MAX
      if (isOfContent) inVain.add(contentId)
      if (isOfContent && tried.late < LATE_MAX) continue
      failed = error
      break
    }
  }
  await context.commit({
    effects: async (tx) => {
      for (const { contentId, of } of vectors) {
        await search.addVectors(tx, contentId, { model: embedder.model, of })
      }
    },
    checkpoint: { inVain: [...inVain] },
  })
  if (failed) throw failed
  return vectors.length
}

async function embedContent(
  context: RunContext<EmbedPayload>,
  embedder: Embedder,
  texts: readonly string[],
): Promise<Float32Array[]> {
  const vectors: Float32Array[] = []
  for (let from = 0; from < texts.length; from += SLICE_TEXTS) {
    const slice = await embedWithin(context, embedder, texts.slice(from, from + SLICE_TEXTS))
    for (const vector of slice) vectors.push(vector)
    // A long content is no job that hangs.
    context.progress({ label: embedder.model })
  }
  return vectors
}

async function embedWithin(
  { signal, clock }: RunContext<EmbedPayload>,
  embedder: Embedder,
  texts: readonly string[],
): Promise<Float32Array[]> {
  const late = new AbortController()
  const cancel = clock.timer(SLICE_MS_MAX, () => late.abort())
  try {
    return await embedder.embed(texts, {
      purpose: 'document',
      signal: AbortSignal.any([signal, late.signal]),
    })
  } catch (thrown) {
    if (!late.signal.aborted || signal.aborted) throw thrown
    throw new TidemarkError(`No vectors came within ${SLICE_MS_MAX} ms.`, {
      kind: 'transient',
      code: LATE,
      cause: thrown,
    })
  } finally {
    cancel()
  }
}

async function finish(
  context: RunContext<EmbedPayload>,
  { model, inVain }: { model: string; inVain: ReadonlySet<number> },
): Promise<Outcome> {
  if (inVain.size === 0) {
    let dropped = 0
    do {
      await context.commit({
        effects: async (tx) => {
          dropped = await dropOtherModels(tx, model, DROPPED_PER_COMMIT)
        },
      })
    } while (dropped > 0 && !context.signal.aborted)
    return {}
  }
  return {
    note: `${inVain.size} documents could not be embedded, and are found by their words.`,
    code: 'in-vain',
  }
}
