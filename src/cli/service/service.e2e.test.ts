/** `tidemark service` with a home and a systemctl of its own. */
import assert from 'node:assert/strict'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { after, describe, test } from 'node:test'
import { Processes } from '../serve/serve.suite.ts'

const processes = new Processes()
after(() => processes.close())
const asked = join(processes.folder, 'asked')
const programs = join(processes.folder, 'programs')
const config = join(processes.folder, 'config')
const home = join(processes.folder, 'data')
const unit = join(config, 'systemd', 'user', 'tidemark.service')
const agent = join(processes.folder, 'Library', 'LaunchAgents', 'tidemark.serve.plist')
const file = process.platform === 'darwin' ? agent : unit

mkdirSync(programs)
for (const name of ['systemctl', 'launchctl']) {
  writeFileSync(join(programs, name), `#!/bin/sh\necho "$0 $*" >> '${asked}'\n`, { mode: 0o755 })
}

async function service(...args: string[]): Promise<{ code: number | null; stdout: string; stderr: string }> {
  const env = { PATH: `${programs}:${process.env.PATH}`, XDG_CONFIG_HOME: config }
  const run = processes.start(['--home', home, 'service', ...args], env)
  const code = await run.ended
  return { code, stdout: run.stdout(), stderr: run.stderr() }
}

describe('tidemark service', () => {
  test('--dry-run prints what would be written and run, and does neither', async () => {
    for (const verb of ['install', 'uninstall', 'status']) {
      const { code, stdout, stderr } = await service(verb, '--dry-run')
      assert.equal(code, 0, stderr)
      assert.match(stdout, /Would run: (?:systemctl --user|launchctl) /)
    }
    assert.ok((await service('install', '--dry-run')).stdout.includes(`Would write ${file}:`))
    assert.ok(!existsSync(file) && !existsSync(asked) && !existsSync(home))
  })

  test('installs, tells its state, and uninstalls', async () => {
    assert.equal((await service('status')).code, 1)
    const installed = await service('install')
    assert.equal(installed.code, 0, installed.stderr)
    const text = readFileSync(file, 'utf8')
    for (const line of text.trimEnd().split('\n')) assert.ok(installed.stdout.includes(line), line)
    assert.ok(text.includes(home))
    const status = await service('status', '--json')
    assert.deepEqual([status.code, JSON.parse(status.stdout).running], [0, true])
    const gone = await service('uninstall')
    assert.equal(gone.code, 0, gone.stderr)
    assert.ok(!existsSync(file))
    assert.match(readFileSync(asked, 'utf8'), /(?:enable|bootstrap)[\s\S]*(?:disable|bootout)/)
    assert.match((await service('uninstall')).stderr, /no service to take away/)
  })

  test('where no manager answers, installs nothing and says so, and takes away what is left of a service', async () => {
    for (const name of ['systemctl', 'launchctl']) {
      writeFileSync(join(programs, name), '#!/bin/sh\necho "no bus here" >&2\nexit 1\n', { mode: 0o755 })
    }
    const refused = await service('install')
    assert.equal(refused.code, 1)
    assert.match(refused.stderr, /did not work: no bus here\.\n.*start "tidemark serve" yourself/)
    assert.ok(!existsSync(file))
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, 'left behind')
    const gone = await service('uninstall')
    assert.equal(gone.code, 0, gone.stderr)
    assert.match(gone.stderr, /no bus here/)
    assert.ok(!existsSync(file))
  })

  test('names the variables of the shell that it will not have', async () => {
    const env = { XDG_CONFIG_HOME: config, TIDEMARK_MASTER_KEY: 'x', TIDEMARK_HOME: home }
    const run = processes.start(['service', 'install', '--dry-run'], env)
    assert.equal(await run.ended, 0, run.stderr())
    assert.match(run.stderr(), /does not see TIDEMARK_MASTER_KEY of this shell/)
    assert.doesNotMatch(run.stderr(), /TIDEMARK_HOME/)
  })

  test('of the whole machine must say whose it is', async () => {
    const { code, stderr } = await service('install', '--system', '--dry-run')
    assert.equal(code, 2)
    assert.match(stderr, /--run-as USER/)
  })
})
