/** Options of a long run. Wrong use, and `--help`, print how it is used. */
import { type ParseArgsConfig, parseArgs } from 'node:util'

export function readUsage<const Config extends ParseArgsConfig>(
  config: Config,
  usage: string,
): ReturnType<typeof parseArgs<Config>> {
  try {
    return parseArgs(config)
  } catch {
    return wrongUse(usage)
  }
}

export function wrongUse(usage: string): never {
  const isAsked = process.argv.includes('--help')
  const to = isAsked ? process.stdout : process.stderr
  to.write(`${usage}\n`)
  process.exit(isAsked ? 0 : 2)
}
