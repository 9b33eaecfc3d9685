/** The pages of object ingest: pipelines with their books, the objects of one, and one object. */
import type { AppPages } from '../../../../web/src/app-pages.ts'
import { lazyPage } from '../../../../web/src/lazy-page.tsx'
import { ingestKeys, ingestLink, pipelineLink } from './queries.ts'

const pipelines = lazyPage(async () => (await import('./pages/pipelines.tsx')).PipelinesPage)
const pipeline = lazyPage(async () => (await import('./pages/pipeline.tsx')).PipelinePage)
const object = lazyPage(async () => (await import('./pages/object.tsx')).ObjectPage)

export const ingestPages: AppPages = {
  name: 'ingest',
  pages: [
    { path: '/ingest', page: pipelines, members: true },
    { path: '/ingest/:name', page: pipeline, members: true },
    { path: '/ingest/:name/objects/:shard', page: object, members: true },
  ],
  navigation: [
    {
      href: ingestLink(),
      text: 'Ingest',
      icon: 'download',
      covers: ['/ingest/'],
      page: pipelines,
      members: true,
      place: 27,
    },
  ],
  live: { stale: {}, polled: [ingestKeys.pipelines] },
  stream: { home: pipelineLink, ofAccount: (account) => `ingest:${account}` },
}
