/** How the demo's home reaches its cloud: its configuration, and its account as if a person had connected it. */
import { join } from 'node:path'
import { systemClock } from '../clock.ts'
import { GMAIL_SCOPES } from '../cloud/gmail/auth.ts'
import { type LoadedConfig, loadConfig } from '../config/load.ts'
import { accountKey } from '../ledger/accounts.ts'
import type { Runtime } from '../server/runtime.ts'
import type { Sim } from '../sim/start.ts'
import { replaceFile } from './demo-home.ts'

/** 75 messages a second: a real mailbox of a new project gets 5. */
export const DEMO_UNITS_PER_MINUTE = 90_000
const FAST_UNITS_PER_MINUTE = 100_000_000

/**
 * Written anew at every start, because the cloud is at another port then. In a file, so that the other commands reach
 * it with --home. The environment does not count: it is about real accounts and a real ledger.
 */
export function configureDemo(
  home: string,
  { sim, port, isFast }: { sim: Sim; port: number; isFast: boolean },
): LoadedConfig {
  replaceFile(
    join(home, 'config.toml'),
    `# Written by tidemark demo at every start.
[gmail]
api_url = "${sim.baseUrl}"
auth_url = "${sim.authUrl}"
token_url = "${sim.tokenUrl}"
revoke_url = "${sim.revokeUrl}"
client_id = "${sim.clientId}"
client_secret = "${sim.clientSecret}"
units_per_minute = ${isFast ? FAST_UNITS_PER_MINUTE : DEMO_UNITS_PER_MINUTE}
requests_per_second_start = ${isFast ? 1_000 : 20}
requests_per_second_max = ${isFast ? 10_000 : 100}

[onedrive]
api_url = "${sim.graphUrl}"
auth_url = "${sim.microsoftAuthUrl}"
token_url = "${sim.microsoftTokenUrl}"
device_url = "${sim.microsoftDeviceUrl}"
client_id = "${sim.microsoftClientId}"

[files]
poll_seconds = 10
debounce_ms = 500
disk_reserve = "50MB"

[bandwidth]
download = "${isFast ? 'unlimited' : '3MB/s'}"
upload = "${isFast ? 'unlimited' : '3MB/s'}"

[mail]
slice = "month"
batch = 50
poll_minutes = 1

[server]
port = ${port}
`,
  )
  return loadConfig({ env: {}, flags: { home } })
}

/** Anew at every start: a cloud that was started again knows only the tokens that it gave out first. */
export async function connectDemo({ accounts, vault }: Runtime, sim: Sim): Promise<void> {
  for (const { address, refreshToken } of sim.accounts) {
    const account = { service: 'gmail', name: address }
    const secret = {
      ...{ kind: 'oauth', clientId: sim.clientId, clientSecret: sim.clientSecret, refreshToken },
      ...{ scopes: [GMAIL_SCOPES.full], obtainedAtMs: systemClock.now() },
    }
    const sealed = vault.seal(accountKey(account), JSON.stringify(secret))
    const found = await accounts.find('gmail', address)
    if (found) {
      await accounts.setSealed(found.id, sealed)
      await accounts.setState(found.id, 'ready')
    } else await accounts.add({ ...account, settings: { spam: true, trash: true }, sealed })
  }
}
