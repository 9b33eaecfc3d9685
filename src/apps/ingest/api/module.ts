/** Object ingest as a module of the server. */
import { z } from 'zod'
import type { ServerModule } from '../../../app/module.ts'
import { booksText, pipelineStatus } from '../status.ts'
import { defineTool, type IngestServices } from './route.ts'
import { ingestRoutes, pipelinesFor } from './routes.ts'

const status = defineTool({
  name: 'ingest_status',
  title: 'How far pipelines of objects are',
  description: 'For each pipeline: how many objects its bucket lists, and what became of them.',
  input: z.object({}),
  access: 'read',
  audience: 'member',
  narrower: 'There is nothing to narrow.',
  run: async (_input, services, { user }) => {
    const rows = await pipelinesFor(services, user)
    if (rows.length === 0) return ['There is no pipeline.']
    const all = await Promise.all(rows.map(({ name }) => pipelineStatus(services.ingest.tables, name)))
    return all.flatMap((one) => [{ quote: one.pipeline }, `${booksText(one)}.`])
  },
})

export const ingestModule: ServerModule<IngestServices> = {
  name: 'ingest',
  routes: ingestRoutes,
  tools: [status],
}
