/** Text that is read as it stands, line by line: notes, logs, source code, JSON. */
import type { TextOutput } from './text-output.ts'

export function readPlain(bytes: Uint8Array, output: TextOutput): void {
  const text = output.decode(bytes)
  output.add({ text, place: { kind: 'lines', first: 1, last: 1 } })
}
