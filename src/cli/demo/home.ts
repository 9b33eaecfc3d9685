/**
 * The folder of a demo. What its simulated world is made of stands in demo.json, so that the next start makes the
 * same one; what happened later stands in journals beside it, written before it happens, each of an app.
 *
 * A folder without demo.json is used only if it is empty: no demo ever runs in a home with real mail.
 */
import { accessSync, constants, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { z } from 'zod'
import { UsageError } from '../../base/errors.ts'
import { readIfThere, replaceFile } from '../../base/whole-file.ts'
import { shellWord } from '../../base/wording.ts'
import { lockFolder } from './lock.ts'

const WORLD_FILE = 'demo.json'
/** Like what the world is written to first: a folder with nothing else in it still counts as empty. */
const LOCK_FILE = `${WORLD_FILE}.lock`
const DAY_MS = 86_400_000

const worldSchema = z.object({
  version: z.literal(1),
  seed: z.int(),
  messages: z.int().min(1),
  /** All the mail that the mailbox begins with is older. */
  toMs: z.int(),
})
export type DemoWorld = z.output<typeof worldSchema>

export type DemoHome = {
  path: string
  /** Nobody has named it, so it goes when the demo ends. */
  isTemporary: boolean
  isNew: boolean
  world: DemoWorld
  /** For the next demo; one that nobody has named is deleted. */
  close(): void
}

export function openDemoHome(input: { path: string | undefined; messages: number; nowMs: number }): DemoHome {
  const isTemporary = input.path === undefined
  const path = input.path ?? mkdtempSync(join(tmpdir(), 'tidemark-demo-'))
  makeFolder(path)
  checkEmpty(path)
  const unlock = lockFolder(path, join(path, LOCK_FILE))
  const close = (): void => {
    unlock()
    if (isTemporary) rmSync(path, { recursive: true, force: true })
  }
  try {
    const kept = readWorld(path)
    const toMs = Math.floor(input.nowMs / DAY_MS) * DAY_MS
    const world: DemoWorld = kept ?? { version: 1, seed: 7, messages: input.messages, toMs }
    if (!kept) replaceFile(join(path, WORLD_FILE), `${JSON.stringify(world)}\n`)
    return { path, isTemporary, isNew: !kept, world, close }
  } catch (thrown) {
    close()
    throw thrown
  }
}

function makeFolder(path: string): void {
  try {
    mkdirSync(path, { recursive: true, mode: 0o700 })
    accessSync(path, constants.R_OK | constants.W_OK | constants.X_OK)
  } catch (cause) {
    throw new UsageError(`The demo cannot keep anything in ${path}: ${(cause as Error).message}.`, {
      code: 'home-unwritable',
      cause,
      hint: 'Give a folder that this user may write to, with --home, or none at all.',
    })
  }
}

function checkEmpty(path: string): void {
  const names = readdirSync(path)
  if (names.includes(WORLD_FILE) || names.every((name) => name.startsWith(WORLD_FILE))) return
  throw new UsageError(`${path} holds something else than a demo.`, {
    code: 'no-demo-home',
    hint: `Give an empty or a new folder, such as: tidemark demo --home ${shellWord(join(tmpdir(), 'tidemark-demo'))}`,
  })
}

function readWorld(path: string): DemoWorld | undefined {
  const text = readIfThere(join(path, WORLD_FILE))
  if (text === undefined) return undefined
  const parsed = worldSchema.safeParse(parseJson(text))
  if (parsed.success) return parsed.data
  throw new UsageError(`${join(path, WORLD_FILE)} is not what a demo of this version has written.`, {
    code: 'demo-damaged',
    hint: 'Begin anew in another folder.',
  })
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
