/** Commands that wait for a person, and the person: what the tests of connecting accounts share. */
import assert from 'node:assert/strict'
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { BIN, type Ended, environment, runHere, type TestHome } from '../jobs/jobs.suite.ts'

export type Running = {
  /** What the pattern finds on stderr, as soon as it is there; undefined if the command ends without it. */
  says(pattern: RegExp): Promise<string | undefined>
  ended: Promise<Ended>
}

/** In this process: a process of its own takes a third of a second of a core before it begins. */
export function begin({ path }: TestHome, ...args: string[]): Running {
  return listened((hear) => runHere(args, environment(path), { onOutput: (_, stderr) => hear(stderr) }))
}

/** Through the real launcher; not spawnSync, because the simulated cloud lives in this process. */
export function launch(
  { path }: TestHome,
  ...args: string[]
): Running & { child: ChildProcessWithoutNullStreams } {
  const child = spawn(BIN, args, { env: environment(path) })
  const written = { stdout: '', stderr: '' }
  const running = listened((hear) => {
    for (const name of ['stdout', 'stderr'] as const) {
      child[name].setEncoding('utf8').on('data', (text: string) => {
        written[name] += text
        hear(written.stderr)
      })
    }
    return new Promise<Ended>((resolve) => {
      child.once('close', (code) => resolve({ code, ...written }))
    })
  })
  return { ...running, child }
}

function listened(start: (hear: (stderr: string) => void) => Promise<Ended>): Running {
  let said = ''
  let look = (): void => {}
  const ended = start((stderr) => {
    said = stderr
    look()
  })
  const says = (pattern: RegExp): Promise<string | undefined> =>
    new Promise((resolve) => {
      look = () => {
        const found = pattern.exec(said)
        if (found) resolve(found[1])
      }
      look()
      void ended.then(() => resolve(undefined))
    })
  return { says, ended }
}

/** As a person with a browser: opens the address, consents, and sees the last page. */
export async function signIn(running: Running): Promise<Ended & { page: string; url: URL }> {
  const url = await running.says(/^(http\S+)$/m)
  if (url === undefined) assert.fail(`no address was printed: ${(await running.ended).stderr}`)
  const page = await (await fetch(url)).text()
  return { ...(await running.ended), page, url: new URL(url) }
}

type Granted = { access: readonly { token: string }[]; refresh: readonly { token: string }[] }

/** No file of the home and no output ever holds a token. */
export function assertNoSecrets(
  home: TestHome,
  { access, refresh }: Granted,
  texts: readonly string[],
): void {
  const secrets = [...access, ...refresh].map(({ token }) => token)
  assert.ok(secrets.length > 0)
  const files = readdirSync(home.path, { recursive: true, withFileTypes: true }).filter((one) => one.isFile())
  const written = files.map((file) => readFileSync(join(file.parentPath, file.name), 'latin1'))
  for (const secret of secrets)
    for (const text of [...texts, ...written]) assert.ok(!text.includes(secret), 'a token was written down')
}
