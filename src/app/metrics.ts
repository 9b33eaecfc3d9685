/** What apps tell Prometheus, beside the engine: each scrape asks all that are open. Knows none of them. */
import { type MetricFamily, metricsText } from '../engine/observe/metrics.ts'
import type { Runtime } from './runtime.ts'

const TEXT = /^[a-z][a-z0-9_]*$/

/** An app that cannot tell takes nothing away from the others: a metric says so. */
export async function appMetricsText({ apps }: Pick<Runtime, 'apps'>): Promise<string> {
  const families: MetricFamily[] = []
  const up: { labels: { app: string }; value: number }[] = []
  for (const [app, open] of apps) {
    if (!open.metrics) continue
    try {
      const own = await open.metrics()
      for (const { name } of own) checkName(app, name)
      families.push(...own)
      up.push({ labels: { app }, value: 1 })
    } catch {
      up.push({ labels: { app }, value: 0 })
    }
  }
  if (up.length === 0) return ''
  families.push({
    name: 'tidemark_app_up',
    type: 'gauge',
    help: '1 if the app tells its numbers.',
    samples: up,
  })
  return metricsText(families)
}

function checkName(app: string, name: string): void {
  if (!name.startsWith(`tidemark_${app}_`) || !TEXT.test(name))
    throw new Error(`The metric ${name} of ${app} must be called tidemark_${app}_…`)
}
