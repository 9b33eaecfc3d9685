/** GET /metrics: what Prometheus reads. */
import type { App } from './app-env.ts'
import type { Services } from './services.ts'

export function addMetrics(app: App, { engine }: Pick<Services, 'engine'>): void {
  app.get('/metrics', async () => {
    const headers = {
      'content-type': 'text/plain; version=0.0.4; charset=utf-8',
      'cache-control': 'no-store',
    }
    return new Response(await engine.metrics(), { headers })
  })
}
