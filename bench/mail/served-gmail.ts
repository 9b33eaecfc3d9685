/** The simulator with a profile of the generator that the command line does not offer. */
import { startSim } from '../../src/sim/start.ts'
import { ADDRESS, type GmailAddress, SEED, YEARS } from './gmail.ts'

export async function serveGmail(order: {
  messages: number
  unitsPerMinute: number | null
  profile: 'plain' | 'small'
}): Promise<GmailAddress> {
  const { messages, unitsPerMinute, profile } = order
  const sim = await startSim({
    seed: SEED,
    gmail: { accounts: [{ address: ADDRESS, messages, profile, years: YEARS }], quota: { unitsPerMinute } },
  })
  process.on('SIGTERM', () => {
    void sim.close().then(() => process.exit(0))
  })
  const { controlUrl } = sim
  const { baseUrl, tokenUrl, authUrl, clientId, clientSecret, accounts } = sim.gmail
  return { baseUrl, tokenUrl, authUrl, controlUrl, clientId, clientSecret, accounts: [...accounts] }
}
