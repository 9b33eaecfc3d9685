/** Questions at the terminal, for a person or a pipe: asked on stderr, answered on stdin. */
import { createInterface, type Interface } from 'node:readline'
import type { Output } from './output.ts'

const LINE_CHARS_MAX = 8_192

export type Lines = { next(question: string): Promise<string | undefined>; close(): void }

/** Who says nothing has not said yes. */
export async function saysYes(lines: Lines, question: string): Promise<boolean> {
  try {
    return /^y(?:es)?$/i.test((await lines.next(`${question} [y/N] `)) ?? '')
  } finally {
    lines.close()
  }
}

export function readLines(output: Output, input: NodeJS.ReadableStream = process.stdin): Lines {
  const reader: Interface = createInterface({ input, terminal: false, crlfDelay: Number.POSITIVE_INFINITY })
  const lines = reader[Symbol.asyncIterator]()
  return {
    async next(question) {
      output.rawError(question)
      const { value, done } = await lines.next()
      return done ? undefined : String(value).slice(0, LINE_CHARS_MAX).trim()
    },
    close: () => reader.close(),
  }
}
