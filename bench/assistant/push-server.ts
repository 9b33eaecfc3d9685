/** What takes pushes of the simulated Gmail over HTTP for a world, as `tidemark serve` does: checked, and then on record. */
import type { Runtime } from '../../src/app/runtime.ts'
import { requestSync } from '../../src/apps/assistant/actions.ts'
import { type PushPart, pushRoute } from '../../src/apps/assistant/api/webhook.ts'
import type { AssistWorld } from '../../src/apps/assistant/assist-world.suite.ts'
import { catalog } from '../../src/apps/catalog.ts'
import { PushTokens } from '../../src/cloud/google/push-token.ts'
import { Users } from '../../src/ledger/users.ts'
import { startHttpServer } from '../../src/server/http-server.ts'
import { TOKEN } from '../../src/server/server.suite.ts'
import { createServer, createServices } from '../../src/server/server.ts'

const AUDIENCE = 'https://tide.example.com/api/assist/push'

export async function startPushServer(world: AssistWorld): Promise<{ close(): Promise<void> }> {
  const { sim, clock, home, worker, place } = world
  const { ledger, engine } = worker
  const { push, jwksUrl: keysUrl } = sim.gmail
  const tokens = new PushTokens({ clock, fetch, keysUrl, audience: AUDIENCE, email: push.settings.email })
  const part: PushPart = {
    tokens: () => tokens,
    isKnown: async (account) => (await world.tables.account(account))?.active === true,
    arrived: async ({ account, historyId, atMs }) => {
      await requestSync(place, account, { historyId, atMs })
    },
  }
  const apps = new Map([['assist', { push: part }]])
  const users = await Users.open(ledger)
  const runtime = { role: 'web', home, ledger, users, engine, apps } as unknown as Runtime
  const services = createServices(runtime, { clock, catalog })
  const server = createServer({ services, modules: [{ name: 'assist', routes: [pushRoute] }], token: TOKEN })
  const http = await startHttpServer({ app: server.app, port: 0 })
  Object.assign(push.settings, { endpoint: `${http.url}/api/assist/push`, audience: AUDIENCE })
  return {
    async close() {
      push.settings.endpoint = null
      await server.close()
      await http.close()
      await services.closeServices()
    },
  }
}
