/**
 * `npm run fidelity [-- --json] [--short] [--root FOLDER]`: clients that other people wrote against the simulated cloud,
 * call by call (e2e/fidelity). Exits with 1 when a call fails. `--root` takes the simulated cloud of another checkout of
 * this project, to see what a change has made of it.
 */
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { clients } from '../e2e/fidelity/clients.ts'
import { type Fidelity, type Row, runClients } from '../e2e/fidelity/harness.ts'
import type { startSim } from '../src/sim/start.ts'
import { readUsage } from './usage.ts'

const USAGE = 'npm run fidelity [-- --json] [--short] [--root FOLDER]'
const OPTIONS = {
  options: {
    json: { type: 'boolean', default: false },
    short: { type: 'boolean', default: false },
    root: { type: 'string', default: join(import.meta.dirname, '..') },
  },
} as const

const { json, short, root } = readUsage(OPTIONS, USAGE).values
const start = (await import(pathToFileURL(join(root, 'src/sim/start.ts')).href)) as {
  startSim: typeof startSim
}
const widths = {
  client: Math.max(...clients.map(({ client }) => client.length)),
  call: 62,
}
const found = await runClients(clients, {
  startSim: start.startSim,
  isShort: short,
  ...(json ? {} : { onRow: printRow }),
})
if (json) process.stdout.write(`${JSON.stringify(found, undefined, 2)}\n`)
else printEnd(found)
process.exitCode = found.rows.every(({ passed }) => passed) ? 0 : 1

function printRow({ client, call, passed, problem }: Row): void {
  const line = `${client.padEnd(widths.client)}  ${call.padEnd(widths.call)}  ${passed ? 'pass' : 'FAIL'}`
  process.stdout.write(`${line}${problem === undefined ? '' : `  ${problem}`}\n`)
}

function printEnd({ rows, leftOut }: Fidelity): void {
  for (const [client, methods] of Object.entries(leftOut)) {
    process.stdout.write(`\nnot simulated, of ${client}: ${methods.join(', ')}\n`)
  }
  const failed = rows.filter(({ passed }) => !passed).length
  process.stdout.write(`\n${rows.length - failed} passed, ${failed} failed\n`)
}
