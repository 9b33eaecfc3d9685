/**
 * Reads HTML and XML as a stream of events. No tree is built, no entity but the standard ones is replaced (a DOCTYPE
 * declares nothing here), and elements nest only so deep.
 */
import { Parser } from 'htmlparser2'
import { SkipDocument } from './contract.ts'
import { decodePieces, detectEncoding } from './decode.ts'

export type Attributes = Record<string, string>

export type MarkupEvents = {
  /** `at` is the position in the decoded text. */
  open(name: string, attributes: Attributes, at: number): void
  close(name: string): void
  text(text: string, at: number): void
  /** Before it is parsed. */
  piece?(text: string): void
}

export type MarkupOptions = { kind: 'html' | 'xml'; depthMax: number }

const DECLARATION_BYTES = 1_024

export function readMarkup(bytes: Uint8Array, options: MarkupOptions, events: MarkupEvents): void {
  const parser = markupParser(options, events)
  for (const piece of decodePieces(bytes, encodingOf(bytes))) {
    events.piece?.(piece)
    parser.write(piece)
  }
  parser.end()
}

/** For what comes in pieces. */
export function markupParser(
  options: MarkupOptions,
  events: MarkupEvents,
): { write(piece: string): void; end(): void } {
  let depth = 0
  const parser = new Parser(
    {
      onopentag(name, attributes) {
        depth += 1
        if (depth > options.depthMax) {
          throw new SkipDocument('too-deep', `its elements are nested more than ${options.depthMax} deep`)
        }
        events.open(name, attributes, parser.startIndex)
      },
      onclosetag(name) {
        depth -= 1
        events.close(name)
      },
      ontext(text) {
        events.text(text, parser.startIndex)
      },
    },
    { xmlMode: options.kind === 'xml', decodeEntities: true },
  )
  return parser
}

/** What the bytes show, then what the document declares. */
function encodingOf(bytes: Uint8Array): string {
  const detected = detectEncoding(bytes) ?? 'windows-1252'
  if (detected !== 'windows-1252') return detected
  const head = Buffer.from(bytes.subarray(0, DECLARATION_BYTES)).toString('latin1')
  const declared =
    /<\?xml[^>]{0,200}\sencoding\s*=\s*["']([\w-]{1,40})["']/i.exec(head) ??
    /<meta[^>]{0,300}\bcharset\s*=\s*["']?([\w-]{1,40})/i.exec(head)
  return declared?.[1] ?? detected
}
