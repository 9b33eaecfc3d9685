/**
 * `node scripts/embed-background.ts`: embeds the texts of the embedded model's background anew, in place. To be run when a
 * text or the model has changed.
 */
import { writeFileSync } from 'node:fs'
import { systemClock } from '../src/base/clock.ts'
import { BACKGROUND_FILE, openBuiltin, readBackground } from '../src/search/embed/builtin.ts'
import { packVector } from '../src/search/index/vectors.ts'

const embedder = openBuiltin({ threads: 1 }, { clock: systemClock })
const texts = readBackground().map(({ text }) => text)
const options = { purpose: 'document', signal: new AbortController().signal } as const
const vectors = await embedder.embed(texts, options)
await embedder.close()
const rows = texts.map((text, at) => ({
  text,
  vector: Buffer.from(packVector(vectors[at]!)).toString('base64'),
}))
writeFileSync(BACKGROUND_FILE, `${JSON.stringify(rows, null, 2)}\n`)
