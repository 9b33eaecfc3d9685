/** A command of this process, and all that it says. */
import { runCommand } from './main.ts'

export type Told = { code: number; out: string; err: string }

export async function told(args: readonly string[], env: Record<string, string>): Promise<Told> {
  const written = { out: '', err: '' }
  const stream = (to: 'out' | 'err') => ({
    write: (text: string | Uint8Array) => {
      written[to] += String(text)
    },
  })
  const code = await runCommand({ args: [...args], env, stdout: stream('out'), stderr: stream('err') })
  return { code, ...written }
}
