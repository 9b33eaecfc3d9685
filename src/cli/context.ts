/**
 * What every command is given: the environment, the output and the configuration. A command that
 * has something to say by its exit code sets `exitCode` and returns.
 */
import { homedir } from 'node:os'
import type { LoadedConfig, Override } from '../config/load.ts'
import { type Environment, type Located, locateFile, locateHome } from '../config/location.ts'
import type { Output } from './output.ts'

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
}

export function createContext(input: { env: Environment; output: Output }): CliContext {
  const context: CliContext = {
    ...input,
    flags: {},
    exitCode: exitCodes.ok,
    locate() {
      const location = { env: input.env, flags: context.flags, userHome: homedir(), cwd: process.cwd() }
      const home = locateHome(location)
      return { home, file: locateFile(location, home.path) }
    },
    async loadConfig(overrides = []) {
      // Only now: zod and the TOML parser are half of the time that a command takes to start.
      const { loadConfig } = await import('../config/load.ts')
      return loadConfig({ env: input.env, flags: context.flags, overrides })
    },
  }
  return context
}
