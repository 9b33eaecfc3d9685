/**
 * Writes the declarations of `tidemark/engine` into `types/`, for projects that use it: their compilers refuse import
 * paths that end in `.ts`, and would check our source by their own rules. npm runs this after an install. Plain
 * JavaScript, because npm may run it with a Node that knows no TypeScript.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, rmSync } from 'node:fs'
import { join } from 'node:path'

const ROOT = process.cwd()
const TSC = join(ROOT, 'node_modules', 'typescript', 'bin', 'tsc')

// An install without the tools of development has nobody who would look at types.
if (existsSync(TSC)) {
  rmSync(join(ROOT, 'types'), { recursive: true, force: true })
  const { status } = spawnSync(process.execPath, [TSC, '--project', 'tsconfig.types.json'], {
    stdio: 'inherit',
  })
  process.exitCode = status ?? 1
}
