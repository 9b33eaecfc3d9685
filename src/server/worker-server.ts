/** What a process answers that only works: its health, and its metrics. */

import type { Services } from '../app/services.ts'
import { closeApi, createApp, type OnError } from './app.ts'
import { addHealth } from './health.ts'
import { addMetrics } from './metrics-route.ts'
import { Security, type SecurityOptions } from './security.ts'
import type { Server } from './server.ts'

export type WorkerServerOptions = Omit<SecurityOptions, 'clock' | 'users'> & {
  services: Pick<Services, 'engine' | 'apps' | 'ledger' | 'role' | 'clock' | 'users'>
  onError?: OnError
}

export function createWorkerServer(options: WorkerServerOptions): Pick<Server, 'app' | 'close'> {
  const { services, onError = () => {} } = options
  const security = new Security({ ...options, clock: services.clock, users: services.users })
  const app = createApp(onError)
  app.use('*', security.middleware)
  const health = addHealth(app, services, security)
  addMetrics(app, services)
  closeApi(app, [])
  return {
    app,
    async close() {
      health.close()
      security.close()
    },
  }
}
