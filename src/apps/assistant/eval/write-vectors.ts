/** Makes local/vectors.json anew, after the mails have changed: `node src/apps/assistant/eval/write-vectors.ts`. */
import { writeFileSync } from 'node:fs'
import { systemClock } from '../../../base/clock.ts'
import { openBuiltin } from '../../../search/embed/builtin.ts'
import { builtInExamples } from '../local/classifier.ts'
import { packVectors } from '../local/vectors.ts'

const embedder = openBuiltin({ threads: 1 }, { clock: systemClock })
const texts = builtInExamples().map(({ text }) => text)
const vectors = await embedder.embed(texts, { purpose: 'document', signal: new AbortController().signal })
const packed = packVectors(texts, { model: embedder.model, vectors })
writeFileSync(new URL('../local/vectors.json', import.meta.url), `${JSON.stringify(packed)}\n`)
await embedder.close()
