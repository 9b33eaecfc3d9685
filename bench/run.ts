/**
 * `npm run bench -- [name] [--json] [--quick] [--only text]… [--save]`
 *
 * Finds `bench/<name>/index.ts`, installs the peers on first use, runs, and prints a table (or one JSON
 * object). What is said while it runs goes to standard error.
 */
import { existsSync, readdirSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { systemClock } from '../src/base/clock.ts'
import { asTidemarkError, UsageError } from '../src/base/errors.ts'
import type { Bench } from './bench.ts'
import { describeMachine } from './machine.ts'
import { installPeers } from './peers.ts'
import { saveResults } from './results.ts'
import { textTable } from './table.ts'

const USAGE = `usage: npm run bench -- [name] [--json] [--quick] [--only text]… [--save]
  --json   one object {bench, date, rows: [{case, subject, value, unit}]} on standard output
  --quick  small sizes: everything runs once, in under a minute
  --only   only cases or subjects whose name contains this text; may be repeated
  --save   keep the result in bench/RESULTS.md`

type Arguments = {
  names: string[]
  json: boolean
  quick: boolean
  only: string[]
  save: boolean
}

async function main(): Promise<void> {
  const args = readArguments(process.argv.slice(2))
  installPeers(say)
  for (const name of args.names) await runBench(name, args)
}

async function runBench(name: string, args: Arguments): Promise<void> {
  const { bench } = (await import(`./${name}/index.ts`)) as { bench: Bench }
  const date = new Date(systemClock.now()).toISOString()
  const run = await bench.run({ quick: args.quick, only: args.only, say })
  if (args.json) console.log(JSON.stringify({ bench: name, date, rows: run.rows }))
  else console.log(`${bench.title}, ${date}\n\n${textTable(run.rows)}\n\n${run.explanation.join('\n\n')}`)
  for (const failure of run.failures) say(`not measured: ${failure}`)
  if (args.save) {
    const path = saveResults({ name, title: bench.title, date, machine: describeMachine(), run })
    say(`saved in ${path}`)
  }
  if (run.failures.length > 0) process.exitCode = 1
}

function readArguments(argv: string[]): Arguments {
  const known = benchNames()
  try {
    const { values, positionals } = parseArgs({
      args: argv,
      allowPositionals: true,
      options: {
        json: { type: 'boolean', default: false },
        quick: { type: 'boolean', default: false },
        save: { type: 'boolean', default: false },
        only: { type: 'string', multiple: true, default: [] },
        help: { type: 'boolean', short: 'h', default: false },
      },
    })
    if (values.help) {
      console.log(`${USAGE}\n  names: ${known.join(', ')}`)
      process.exit(0)
    }
    const unknown = positionals.find((name) => !known.includes(name))
    if (unknown) throw new UsageError(`no bench is called ${unknown}; there is: ${known.join(', ')}`)
    const { json, quick, save, only } = values
    if (save && (quick || only.length > 0)) {
      throw new UsageError('--save keeps whole runs only: leave out --quick and --only')
    }
    return { names: positionals.length > 0 ? positionals : known, json, quick, save, only }
  } catch (error) {
    if (error instanceof UsageError) throw error
    throw new UsageError(error instanceof Error ? error.message : String(error), { cause: error })
  }
}

function benchNames(): string[] {
  const here = new URL('.', import.meta.url)
  return readdirSync(here, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && existsSync(new URL(`${entry.name}/index.ts`, here)))
    .map((entry) => entry.name)
    .sort()
}

function say(line: string): void {
  console.error(line)
}

main().catch((thrown: unknown) => {
  const error = asTidemarkError(thrown)
  say(error.hint ? `${error.message}\n${error.hint}` : error.message)
  if (error instanceof UsageError) say(USAGE)
  else if (process.env.TIDEMARK_DEBUG) say(error.stack ?? '')
  process.exitCode = error instanceof UsageError ? 2 : 1
})
