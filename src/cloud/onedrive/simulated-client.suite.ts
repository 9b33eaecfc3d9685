/** A OneDrive client that talks to the simulated OneDrive. */
import { systemClock } from '../../base/clock.ts'
import { createHttpExchange } from '../../base/http-exchange.ts'
import type { SimDriveInput } from '../../sim/onedrive/onedrive.ts'
import type { SimDrive } from '../../sim/onedrive/sim-drive.ts'
import { type Sim, type SimOptions, startSim } from '../../sim/start.ts'
import { OneDriveClient, type OneDriveClientOptions } from './client.ts'
import { freePace } from './scripted-client.suite.ts'

export type SimulatedDrive = {
  sim: Sim
  client: OneDriveClient
  driveId: string
  rootId: string
  drive: SimDrive
  close(): Promise<void>
}

export const ACCOUNT = 'ann@example.com'

export async function simulated(
  input: Partial<SimDriveInput> = {},
  options: Partial<OneDriveClientOptions> = {},
  simOptions: Partial<SimOptions> = {},
): Promise<SimulatedDrive> {
  const sim = await startSim({
    ...simOptions,
    onedrive: { drives: [{ account: ACCOUNT, ...input }], ...simOptions.onedrive },
  })
  const exchange = createHttpExchange()
  const { accessToken } = sim.onedrive.issue(ACCOUNT)
  const client = new OneDriveClient({
    exchange,
    clock: systemClock,
    apiUrl: sim.onedrive.graphUrl,
    pace: freePace,
    timeoutMs: 20_000,
    token: { access: async () => accessToken, refused: () => undefined },
    ...options,
  })
  const drive = sim.onedrive.drive(ACCOUNT)
  return {
    sim,
    client,
    drive,
    driveId: drive.id,
    rootId: drive.state.root.id,
    async close() {
      exchange.close()
      await sim.close()
    },
  }
}
