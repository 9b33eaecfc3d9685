/** The context of a process that runs one command. */
import { homedir } from 'node:os'
import { type CliContext, exitCodes } from '../app/command.ts'
import { type Environment, locateFile, locateHome } from '../config/location.ts'
import type { Output } from './output/output.ts'

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
      const { catalog } = await import('../apps/catalog.ts')
      return loadConfig({ catalog, env: input.env, flags: context.flags, overrides })
    },
    async openRuntime({ overrides, ...more }) {
      const { openRuntime } = await import('../runtime/runtime.ts')
      const { values: config, home, origins } = await context.loadConfig(overrides)
      return openRuntime({ config, origins, home: home.path, env: input.env, role: 'worker', ...more })
    },
  }
  return context
}
