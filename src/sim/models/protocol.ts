/** What the protocols of language models have in common: how a call is read, answered and refused. */
import type { SimAnswer, SimCall } from '../server.ts'
import type { Answered, Asked } from './exchange.ts'

/** `reason`: Google's, where the code says too little. */
export type Problem = { code: string | null; message: string; reason?: string }

/** A call whose body was JSON. `model`: where the path names it. */
export type ProtocolCall = Pick<SimCall, 'headers' | 'path'> & { json: unknown; model?: string }

export type ProtocolAdapter = {
  keyOf(call: SimCall): string | undefined
  /** Undefined where it makes no sense. */
  read(call: ProtocolCall): Asked | undefined
  answer(asked: Asked, answered: Answered, id: string): SimAnswer
  refuse(status: number, problem: Problem & { headers?: Record<string, string> }): SimAnswer
  problems: {
    key: Problem & { status: number }
    model(name: string): Problem & { status: number }
    body: Problem & { status: number }
    context(about: { tokens: number; tokensMax: number }): Problem & { status: number }
    throttled: Problem
    failed: Problem
  }
}

/** Pieces of a stream; a real one sends a token at a time. */
const PIECE_CHARS = 24

export function piecesOf(text: string): string[] {
  const pieces: string[] = []
  for (let from = 0; from < text.length; from += PIECE_CHARS)
    pieces.push(text.slice(from, from + PIECE_CHARS))
  return pieces
}

/** Server-sent events, as they stand. */
export function eventStream(events: readonly string[]): SimAnswer {
  return {
    status: 200,
    headers: { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache' },
    body: events.map((event) => Buffer.from(`${event}\n\n`)),
  }
}

export function headerText(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value[0] : value
}
