/** A OneDrive client that talks to the simulated OneDrive. */
import { systemClock } from '../../base/clock.ts'
import { createHttpExchange } from '../../base/http-exchange.ts'
import { type Sim, startSim } from '../../sim/start.ts'
import { OneDriveClient, type OneDriveClientOptions } from './client.ts'
import { freePace } from './scripted-client.suite.ts'

type SimDriveInput = NonNullable<Parameters<typeof startSim>[0]['drives']>[number]

export type SimulatedDrive = {
  sim: Sim
  client: OneDriveClient
  driveId: string
  rootId: string
  drive: ReturnType<Sim['drive']>
  close(): Promise<void>
}

export const ACCOUNT = 'ann@example.com'

export async function simulated(
  input: Partial<SimDriveInput> = {},
  options: Partial<OneDriveClientOptions> = {},
  simOptions: Partial<Parameters<typeof startSim>[0]> = {},
): Promise<SimulatedDrive> {
  const sim = await startSim({ drives: [{ account: ACCOUNT, ...input }], ...simOptions })
  const exchange = createHttpExchange()
  const { accessToken } = sim.issueDrive(ACCOUNT)
  const client = new OneDriveClient({
    ...{ exchange, clock: systemClock, apiUrl: sim.graphUrl, pace: freePace, timeoutMs: 20_000 },
    token: { access: async () => accessToken, refused: () => undefined },
    ...options,
  })
  const drive = sim.drive(ACCOUNT)
  return {
    ...{ sim, client, drive, driveId: drive.id, rootId: drive.state.root.id },
    async close() {
      exchange.close()
      await sim.close()
    },
  }
}
