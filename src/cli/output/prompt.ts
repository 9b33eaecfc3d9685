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

export function readLines(
  output: Pick<Output, 'rawError'>,
  input: NodeJS.ReadableStream = process.stdin,
): Lines {
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

const [CTRL_C, CTRL_D, BACKSPACE] = ['\u0003', '\u0004', '\u007f']

/** One line from a terminal that does not show what is typed. Undefined where nothing more comes. */
export function readHidden(output: Output, question: string): Promise<string | undefined> {
  const input = process.stdin
  output.rawError(question)
  return new Promise((resolve) => {
    let typed = ''
    const end = (line: string | undefined): void => {
      input.off('data', hear)
      input.setRawMode(false)
      input.pause()
      output.rawError('\n')
      resolve(line)
    }
    const hear = (chunk: Buffer): void => {
      for (const sign of chunk.toString('utf8')) {
        if (sign === CTRL_C) process.kill(process.pid, 'SIGINT')
        if (sign === CTRL_C || sign === CTRL_D) end(undefined)
        else if (sign === '\r' || sign === '\n') end(typed.trim())
        typed = sign === BACKSPACE ? typed.slice(0, -1) : (typed + sign).slice(0, LINE_CHARS_MAX)
      }
    }
    input.setRawMode(true)
    input.on('data', hear)
    input.resume()
  })
}
