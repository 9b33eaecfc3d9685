/** What the server and MCP offer: the engine, the accounts, the users, and every app. */
import { clientsModule } from '../../app/accounts/client-routes.ts'
import { accountsModule } from '../../app/accounts/module.ts'
import type { ServerModule } from '../../app/module.ts'
import { usersModules } from '../../app/users/module.ts'
import { apps } from '../../apps/registry.ts'
import { engineModule } from '../../server/engine-api/module.ts'

export async function serverModules(): Promise<readonly ServerModule[]> {
  const ofApps: ServerModule[] = []
  // One after the other: a package that is required by one and imported by another at the same time cannot be loaded.
  for (const app of apps) ofApps.push(await app.server())
  const accounts = [await accountsModule(apps, ofApps), await clientsModule()]
  return [engineModule, ...accounts, ...usersModules(apps), ...ofApps]
}
