/** What the client's parts have in common: paced calls, addresses of items, checks of what goes into them. */
import type { z } from 'zod'
import { type Clock, sleep } from '../../base/clock.ts'
import { TidemarkError, UsageError } from '../../base/errors.ts'
import type { Pace } from '../pace.ts'
import { ID } from './schema.ts'
import type { Answer, Call, Transport } from './transport.ts'

export type CallOptions = {
  signal?: AbortSignal | undefined
  /** How often something that is not found is looked for: what was just made may not be there yet. */
  missingTries?: number | undefined
  /** What it costs; 1 unless told otherwise. */
  units?: number | undefined
}

/** An item that is there, or a name in a folder. */
export type Target = { itemId: string } | { parentId: string; name: string }

/**
 * Draws bytes from the budget of a direction before they are passed on. `wholeBytes` is what the file has altogether,
 * where it is known, so that small ones need not wait behind large ones.
 */
export type SpendBytes = (
  direction: 'up' | 'down',
  bytes: number,
  signal?: AbortSignal,
  wholeBytes?: number,
) => void | Promise<void>

const MISSING_WAIT_MS = 250
const MISSING_TRIES_MAX = 8

export class Calls {
  readonly transport: Transport
  readonly clock: Clock
  readonly spendBytes: SpendBytes | undefined
  readonly #pace: Pace

  constructor(options: {
    transport: Transport
    clock: Clock
    pace: Pace
    spendBytes?: SpendBytes | undefined
  }) {
    this.transport = options.transport
    this.clock = options.clock
    this.spendBytes = options.spendBytes
    this.#pace = options.pace
  }

  /** The body of the answer in the schema's form. */
  json<T>(
    method: string,
    call: Call,
    read: { schema: z.ZodType<T>; what: string; whenEmpty?: () => T },
    options: CallOptions,
  ): Promise<T> {
    return this.paced(method, options, async (signal) => {
      const answer = await this.transport.open(call, signal)
      return await answer.json(read.schema, read.what, read.whenEmpty)
    })
  }

  /** For what answers with nothing that matters. */
  async done(method: string, call: Call, options: CallOptions): Promise<Answer> {
    return await this.paced(method, options, async (signal) => {
      const answer = await this.transport.open(call, signal)
      await answer.skip()
      return answer
    })
  }

  async paced<T>(
    method: string,
    { signal, missingTries = 1, units = 1 }: CallOptions,
    fn: (signal?: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const call = { method, units, ...(signal && { signal }) }
    for (let tries = 1; ; tries++) {
      try {
        return await this.#pace(call, (paced) => fn(paced ?? signal))
      } catch (error) {
        const missing = error instanceof TidemarkError && error.code === 'not-found'
        if (!missing || tries >= Math.min(missingTries, MISSING_TRIES_MAX)) throw error
        await sleep(this.clock, MISSING_WAIT_MS * 2 ** (tries - 1), signal)
      }
    }
  }
}

export function drivePath(driveId: string): string {
  return `/drives/${checked(driveId)}`
}

export function itemPath(driveId: string, itemId: string): string {
  return `${drivePath(driveId)}/items/${checked(itemId)}`
}

/** With `action` behind it, such as `content`. */
export function targetPath(driveId: string, target: Target, action = ''): string {
  const end = action === '' ? '' : `/${action}`
  if ('itemId' in target) return `${itemPath(driveId, target.itemId)}${end}`
  const named = `${itemPath(driveId, target.parentId)}:/${segment(target.name)}`
  return action === '' ? named : `${named}:${end}`
}

/** One name in a path; a name that would be more than one is refused. */
export function segment(name: string): string {
  if (name === '' || name === '.' || name === '..' || /[/\\\0]/.test(name) || !name.isWellFormed()) {
    throw new TidemarkError('This name cannot stand on OneDrive.', {
      kind: 'permanent',
      code: 'invalid-name',
      hint: 'Rename the file.',
    })
  }
  return encodeURIComponent(name)
}

export function matchHeader(ifMatch: string | undefined): Record<string, string> {
  if (ifMatch === undefined) return {}
  if (!/^[\x21-\x7e]{1,1024}$/.test(ifMatch)) throw new UsageError('A tag holds characters that no tag has.')
  return { 'if-match': ifMatch }
}

export function jsonBody(value: unknown): Pick<Call, 'body' | 'headers'> {
  return { body: JSON.stringify(value), headers: { 'content-type': 'application/json' } }
}

/** In whole milliseconds, as Graph takes it. */
export function fileTimes(modifiedMs: number): { lastModifiedDateTime: string } {
  return { lastModifiedDateTime: new Date(modifiedMs).toISOString() }
}

function checked(id: string): string {
  if (!ID.test(id)) throw new UsageError('An id holds characters that no id has.')
  return encodeURIComponent(id)
}
