/**
 * What every command is given: the environment, the output, the configuration, and how to open what it works with. A
 * command that has something to say by its exit code sets `exitCode` and returns.
 */
import type { Command } from 'commander'
import type { Output } from '../cli/output/output.ts'
import type { LoadedConfig, Override } from '../config/load.ts'
import type { Environment, Located } from '../config/location.ts'
import type { AppOpening, OpenRuntime } from './runtime.ts'

export const exitCodes = {
  /** Everything is settled. */
  ok: 0,
  failure: 1,
  /** Wrong usage or configuration. */
  usage: 2,
  /** Finished, but with bad items. */
  bad: 3,
} as const

export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes]

/** The flags that every command takes. */
export type GlobalFlags = { home?: string; config?: string; json?: boolean; debug?: boolean }

export type CliContext = {
  env: Environment
  output: Output
  flags: GlobalFlags
  exitCode: ExitCode
  /** Where the home folder and the configuration file are, whatever stands in it. */
  locate(): { home: Located; file: Located }
  /** Loads the configuration, with the settings that the command's own flags give. */
  loadConfig(overrides?: readonly Override[]): Promise<LoadedConfig>
  /** Opens the ledger, an engine and these apps, and starts nothing. Whoever opens them closes them. */
  openRuntime(input: OpenInput): Promise<OpenRuntime>
}

export type OpenInput = {
  apps: readonly AppOpening[]
  /** How the process is called among the workers. */
  name: string
  overrides?: readonly Override[]
  /** See AppPlace. */
  appOverrides?: Readonly<Record<string, unknown>>
  /** False where a missing ledger is an error, with the code `ledger-unmade`. */
  create?: boolean
}

/** Describes a noun and its verbs, and imports what they need inside their actions: `--help` loads nothing else. */
export type Register = (program: Command, context: CliContext) => void
