import { listEngines, liveCount } from '../engine/observe/engines.ts'
import type { Services } from './services.ts'

/** What was begun waits in the ledger until some process works it off; this one may not. */
export async function noteWithoutEngine({ ledger }: Pick<Services, 'ledger'>): Promise<string> {
  const isAttended = liveCount(await listEngines(ledger)) > 0
  return isAttended ? '' : ' No engine is running: it waits until one is (tidemark serve).'
}
