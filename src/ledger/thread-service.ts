/** The thread's side of a conversation with the main thread: one answer per question, in order. */
import { parentPort } from 'node:worker_threads'
import { TidemarkError, UsageError } from '../base/errors.ts'

export type Question = { number: number; method: string; args: unknown }

export type Reply = { number: number; value: unknown } | { number: number; error: PackedError }

/** An error on its way between threads, which would lose its class and its fields. */
export type PackedError = {
  message: string
  stack?: string | undefined
  /** Set for a TidemarkError. */
  kind?: TidemarkError['kind']
  isUsage: boolean
  code?: string | undefined
  hint?: string | undefined
  retryAfterMs?: number | undefined
}

/** Answers questions, one after another, until `close` was asked, which ends the thread. */
export function serve(methods: Record<string, (args: never) => unknown>, close: () => void): void {
  const port = parentPort!
  const answer = async ({ number, method, args }: Question): Promise<void> => {
    let reply: Reply
    try {
      const run = method === 'close' ? close : methods[method]
      if (!run) throw new Error(`a thread was asked for ${method}, which it does not know`)
      const value = run(args as never)
      reply = { number, value: value instanceof Promise ? await value : value }
    } catch (thrown) {
      reply = { number, error: packError(thrown) }
    }
    port.postMessage(reply)
    if (method === 'close') port.close()
  }
  let last: Promise<void> = Promise.resolve()
  port.on('message', (question: Question) => {
    last = last.then(() => answer(question))
  })
}

export function packError(thrown: unknown): PackedError {
  if (thrown instanceof TidemarkError) {
    const { message, stack, kind, code, hint, retryAfterMs } = thrown
    return { message, stack, kind, isUsage: thrown instanceof UsageError, code, hint, retryAfterMs }
  }
  if (thrown instanceof Error) return { message: thrown.message, stack: thrown.stack, isUsage: false }
  return { message: String(thrown), isUsage: false }
}

export function unpackError(packed: PackedError): Error {
  const { message, kind, code, hint, retryAfterMs } = packed
  let error: Error
  if (packed.isUsage) {
    error = new UsageError(message, { ...(code && { code }), ...(hint && { hint }) })
  } else if (kind) {
    error = new TidemarkError(message, {
      kind,
      ...(code && { code }),
      ...(hint && { hint }),
      ...(retryAfterMs !== undefined && { retryAfterMs }),
    })
  } else error = new Error(message)
  if (packed.stack) error.stack = packed.stack
  return error
}
