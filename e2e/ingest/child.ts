/** A life in a process of its own, to be killed and stopped. Without its parent it ends. */
import { beginLife, type LifeOptions } from './life.ts'

const options = JSON.parse(process.env.ORACLE_CHILD ?? '') as Pick<LifeOptions, 'home' | 'ledgerUrl'>
process.stdin.on('close', () => process.exit(0)).resume()
await beginLife({
  ...options,
  onError: (error) => void process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`),
})
process.stdout.write('begun\n')
