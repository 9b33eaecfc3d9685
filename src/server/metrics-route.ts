/** GET /metrics: what Prometheus reads. */

import type { Services } from '../app/services.ts'
import type { App } from './app-env.ts'

export function addMetrics(app: App, { engine }: Pick<Services, 'engine'>): void {
  app.get('/metrics', async () => {
    const headers = {
      'content-type': 'text/plain; version=0.0.4; charset=utf-8',
      'cache-control': 'no-store',
    }
    return new Response(await engine.metrics(), { headers })
  })
}
