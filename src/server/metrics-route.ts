/** GET /metrics: what Prometheus reads. */

import { appMetricsText } from '../app/metrics.ts'
import type { Services } from '../app/services.ts'
import type { App } from './app-env.ts'

export function addMetrics(app: App, { engine, apps }: Pick<Services, 'engine' | 'apps'>): void {
  app.get('/metrics', async () => {
    const headers = {
      'content-type': 'text/plain; version=0.0.4; charset=utf-8',
      'cache-control': 'no-store',
    }
    return new Response((await engine.metrics()) + (await appMetricsText({ apps })), { headers })
  })
}
