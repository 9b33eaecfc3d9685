/**
 * Where a large `files put` stands, kept in the home folder: the same command goes on from there after an interruption,
 * as long as the file, its place and what it replaces are the same. The address is a key, so nobody else may read it;
 * it ends by itself.
 */
import { createHash } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'

const FOLDER = 'uploads'
/** OneDrive ends sessions after days. */
const KEPT_MS_MAX = 14 * 86_400_000
/** One that ends this soon is not worth the asking. */
const EXPIRES_SOON_MS = 10_000

const session = z.object({ url: z.string().min(1), expiresAtMs: z.number() })
export type KeptSession = z.infer<typeof session>

export class KeptUpload {
  readonly #folder: string
  readonly #path: string

  /** `about`: everything that must be the same. */
  constructor(home: string, about: unknown) {
    const key = createHash('sha256').update(JSON.stringify(about)).digest('hex').slice(0, 32)
    this.#folder = join(home, FOLDER)
    this.#path = join(this.#folder, `${key}.json`)
  }

  /** Undefined: there is none that can be gone on with. */
  read(nowMs: number): KeptSession | undefined {
    try {
      const kept = session.parse(JSON.parse(readFileSync(this.#path, 'utf8')))
      return kept.expiresAtMs > nowMs + EXPIRES_SOON_MS ? kept : undefined
    } catch {
      // None, or not a whole one: the upload begins anew, and nothing of it was visible.
      return undefined
    }
  }

  /** What cannot be kept (a disk that is full) is no reason not to upload: the next one only begins anew. */
  write(kept: KeptSession, nowMs: number): void {
    try {
      this.#write(kept, nowMs)
    } catch {
      // As above.
    }
  }

  #write({ url, expiresAtMs }: KeptSession, nowMs: number): void {
    mkdirSync(this.#folder, { recursive: true, mode: 0o700 })
    for (const name of readdirSync(this.#folder)) {
      const path = join(this.#folder, name)
      const modifiedMs = statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? nowMs
      if (nowMs - modifiedMs > KEPT_MS_MAX) rmSync(path, { force: true })
    }
    const fresh = `${this.#path}.new`
    writeFileSync(fresh, JSON.stringify({ url, expiresAtMs }), { mode: 0o600 })
    renameSync(fresh, this.#path)
  }

  drop(): void {
    try {
      rmSync(this.#path, { force: true })
    } catch {
      // A session that has ended is not gone on with, and its key opens nothing.
    }
  }
}
