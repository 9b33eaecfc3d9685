/**
 * What `tidemark doctor` looks at: a list of checks, each of which finds things. To add one, write it in a file of its
 * own and name it in `checks`. A check that fails is a finding itself, and keeps no other from running.
 */
import { accessSync, constants, existsSync, statfsSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { CliContext } from '../../app/command.ts'
import { asTidemarkError } from '../../base/errors.ts'
import { formatBytes } from '../../base/format.ts'
import { shellWord } from '../../base/wording.ts'
import { lookAtModels } from '../../cloud/models/settings.ts'
import { DATABASE_NAMES } from '../../config/location.ts'
import { TOKEN_FILE } from '../serve/token.ts'
import { accountFindings, quotaFindings } from './accounts.ts'
import { type Finding, type Level, openSite, type Site } from './site.ts'

export type Check = { name: string; run: (site: Site) => Promise<Finding[]> | Finding[] }

const checks: readonly Check[] = [
  { name: 'home', run: lookAtHome },
  { name: 'space', run: lookAtSpace },
  { name: 'ledger', run: lookAtLedgerItself },
  { name: 'vault', run: lookAtVault },
  { name: 'secrets', run: lookAtSecrets },
  { name: 'accounts', run: accountFindings },
  { name: 'quota', run: quotaFindings },
  { name: 'models', run: ({ config }) => lookAtModels(config.models) },
]

export async function examine(context: CliContext): Promise<({ check: string } & Finding)[]> {
  const site = await openSite(context)
  const findings: ({ check: string } & Finding)[] = []
  try {
    for (const { name, run } of checks) {
      for (const finding of await attempt(() => run(site))) findings.push({ check: name, ...finding })
    }
  } finally {
    await site.ledger.opened?.close()
  }
  return findings
}

async function attempt(run: () => Promise<Finding[]> | Finding[]): Promise<Finding[]> {
  try {
    return await run()
  } catch (thrown) {
    return [problemFinding(thrown)]
  }
}

function problemFinding(thrown: unknown): Finding {
  const { message, hint } = asTidemarkError(thrown)
  return { level: 'problem', text: message, hint }
}

function lookAtHome({ home }: Site): Finding[] {
  const stat = statSync(home, { throwIfNoEntry: false })
  if (!stat) return [{ level: 'ok', text: `${home} is not there yet; it is made when it is needed` }]
  if (!stat.isDirectory()) {
    const hint = 'Name another one by --home or TIDEMARK_HOME.'
    return [{ level: 'problem', text: `${home} is not a folder`, hint }]
  }
  try {
    accessSync(home, constants.R_OK | constants.W_OK | constants.X_OK)
  } catch {
    const hint = 'Make it yours: check its owner and its mode.'
    return [{ level: 'problem', text: `${home} cannot be written to`, hint }]
  }
  const mode = process.platform === 'win32' ? 0 : stat.mode & 0o077
  const hint = `chmod 700 ${home}`
  if ((mode & 0o022) !== 0) {
    return [{ level: 'problem', text: `${home} can be changed by others`, hint }]
  }
  if (mode !== 0) return [{ level: 'warning', text: `${home} can be looked into by others`, hint }]
  return [{ level: 'ok', text: `${home} can be written to, by its owner alone` }]
}

/**
 * Whoever reads the token may do everything, and whoever changes the configuration decides what is done; that of the
 * key is looked at with the vault. A configuration in a folder that others cannot enter is as closed as the folder.
 */
function lookAtSecrets({ home, configFile }: Site): Finding[] {
  if (process.platform === 'win32') return []
  const token = join(home, TOKEN_FILE)
  const findings: Finding[] = []
  const say = (level: Level, text: string, hint: string): void => void findings.push({ level, text, hint })
  if ((modeOf(token) & 0o077) !== 0) {
    say('problem', `${token} is open to others`, `rm ${shellWord(token)}; the next start makes another`)
  }
  const folder = modeOf(dirname(configFile))
  const config = (folder & 0o011) === 0 ? 0 : modeOf(configFile)
  const hint = `chmod 600 ${shellWord(configFile)}`
  // Whoever may write to its folder puts another one there, unless the folder leaves that to owners.
  const isReplaceable = config !== 0 && (folder & 0o022) !== 0 && (folder & 0o1000) === 0
  if ((config & 0o022) !== 0) say('problem', `${configFile} can be changed by others`, hint)
  else if (isReplaceable) {
    const close = `chmod go-w ${shellWord(dirname(configFile))}`
    say('problem', `${configFile} can be replaced by others, who may write to its folder`, close)
  } else if ((config & 0o044) !== 0) say('warning', `${configFile} can be read by others`, hint)
  if (findings.length > 0) return findings
  return [{ level: 'ok', text: 'neither the configuration nor the token is open to others' }]
}

function modeOf(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.mode ?? 0
}

const SPACE_WARN_BYTES = 2_000_000_000
const SPACE_PROBLEM_BYTES = 200_000_000

function lookAtSpace({ home }: Site): Finding[] {
  let folder = home
  while (!existsSync(folder) && dirname(folder) !== folder) folder = dirname(folder)
  const { bavail, bsize } = statfsSync(folder)
  const free = bavail * bsize
  const text = `${formatBytes(free)} are free at ${home}`
  const hint = 'Free some space, or move the home folder to a larger disk.'
  const level = free < SPACE_PROBLEM_BYTES ? 'problem' : free < SPACE_WARN_BYTES ? 'warning' : 'ok'
  return [{ level, text, hint }]
}

async function lookAtLedgerItself({ ledger }: Site): Promise<Finding[]> {
  if (ledger.error !== undefined) return [problemFinding(ledger.error)]
  const { database, where } = ledger.place!
  if (!ledger.opened)
    return [{ level: 'ok', text: `there is none at ${where} yet; it is made when it is needed` }]
  try {
    // A write that changes nothing: a server may let somebody in who may only look.
    await ledger.opened.clearAlert('doctor', '')
  } catch (error) {
    return [problemFinding(error)]
  }
  return [
    {
      level: 'ok',
      text: `${DATABASE_NAMES[database]} at ${where} can be read and written`,
    },
  ]
}

function lookAtVault({ vault, home }: Site): Finding[] {
  const { opened, error } = vault
  if (!opened) return [problemFinding(error)]
  if (!opened.isMade)
    return [{ level: 'ok', text: `there is no master key yet; ${opened.where} is made when needed` }]
  const text = `the master key is ${opened.where}`
  if (!opened.where.startsWith(home)) return [{ level: 'ok', text }]
  return [
    {
      level: 'ok',
      text: `${text}, readable by its owner alone; without it, accounts must be connected again`,
    },
  ]
}
