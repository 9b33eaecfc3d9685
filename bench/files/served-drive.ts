/** The simulator in a process of its own, with a drive that is empty or has what `tree` and `huge` say. */
import { startSim } from '../../src/sim/start.ts'
import { filesOf, type Huge, hugeFiles, MODIFIED_MS, type Tree } from './tree.ts'

export type DriveOrder = { do: 'drive'; tree?: Tree; huge?: Huge; latencyMs?: number }

export type DriveAt = {
  graphUrl: string
  authUrl: string
  tokenUrl: string
  deviceUrl: string
  controlUrl: string
  clientId: string
  driveId: string
  rootId: string
  accessToken: string
  refreshToken: string
}

export const ACCOUNT = 'ann@example.com'
const QUOTA_BYTES = 2 ** 50

export async function serveDrive({ tree, huge, latencyMs = 0 }: DriveOrder): Promise<DriveAt> {
  const rules = [{ do: 'latency' as const, latency: { kind: 'fixed' as const, ms: latencyMs } }]
  const sim = await startSim({
    ...(latencyMs > 0 && { faults: { rules } }),
    onedrive: { drives: [{ account: ACCOUNT, quotaBytes: QUOTA_BYTES }] },
  })
  const drive = sim.onedrive.drive(ACCOUNT)
  if (tree) {
    for (const { path, content } of filesOf(tree))
      drive.device.write(path, content, { modifiedMs: MODIFIED_MS })
  }
  for (const { path, seed, size } of huge ? hugeFiles(huge) : []) drive.device.write(path, { seed, size })
  process.on('SIGTERM', () => {
    void sim.close().then(() => process.exit(0))
  })
  const { accessToken, refreshToken } = sim.onedrive.issue(ACCOUNT)
  return {
    graphUrl: sim.onedrive.graphUrl,
    authUrl: sim.onedrive.authUrl,
    tokenUrl: sim.onedrive.tokenUrl,
    deviceUrl: sim.onedrive.deviceUrl,
    controlUrl: sim.controlUrl,
    clientId: sim.onedrive.clientId,
    driveId: drive.id,
    rootId: drive.state.root.id,
    accessToken,
    refreshToken,
  }
}

/** Calls of the API so far: neither tokens nor our own questions. */
export async function apiCalls({ controlUrl }: Pick<DriveAt, 'controlUrl'>): Promise<number> {
  const { requests } = (await control({ controlUrl }, 'GET', 'counters')) as {
    requests: Record<string, Record<string, number>>
  }
  let calls = 0
  for (const [name, statuses] of Object.entries(requests)) {
    if (name === 'control' || /oauth|token/.test(name)) continue
    for (const count of Object.values(statuses)) calls += count
  }
  return calls
}

export async function control(
  { controlUrl }: Pick<DriveAt, 'controlUrl'>,
  method: string,
  path: string,
  body?: object,
): Promise<unknown> {
  const response = await fetch(`${controlUrl}/${path}`, {
    method,
    ...(body ? { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } } : {}),
  })
  if (!response.ok) throw new Error(`the simulator answered ${response.status}: ${await response.text()}`)
  return await response.json()
}

/** The other device changes a file. */
export async function writeThere(at: DriveAt, path: string, text: string): Promise<void> {
  await control(at, 'POST', `drives/${encodeURIComponent(ACCOUNT)}/write`, { path, text })
}
