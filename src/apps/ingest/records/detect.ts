/** What an object is: by its first bytes, then its name, then the type that its store tells. */
import { TidemarkError } from '../../../base/errors.ts'
import type { Compression, ReadOptions, ReadShape, RecordFormat } from '../contract.ts'
import { unreadable } from './byte-stream.ts'
import { csvShapeOf } from './csv.ts'

/** How much of the beginning is looked at, always the same, so that every reading comes to the same answer. */
export const SAMPLE_BYTES = 64 * 1024

const BY_EXTENSION: Readonly<Record<string, RecordFormat | 'json-any'>> = {
  ndjson: 'ndjson',
  jsonl: 'ndjson',
  json: 'json-any',
  csv: 'csv',
  tsv: 'tsv',
  tab: 'tsv',
  txt: 'text',
  text: 'text',
  parquet: 'parquet',
  avro: 'avro',
}
const BY_TYPE: Readonly<Record<string, RecordFormat | 'json-any'>> = {
  'application/x-ndjson': 'ndjson',
  'application/jsonl': 'ndjson',
  'application/json': 'json-any',
  'text/csv': 'csv',
  'text/tab-separated-values': 'tsv',
  'application/vnd.apache.parquet': 'parquet',
  'avro/binary': 'avro',
}
/** Lists that wrap records under one of these names do so also when they are empty. */
const RECORDS_FIELDS: ReadonlySet<string> = new Set([
  'Records',
  'records',
  'items',
  'events',
  'value',
  'results',
])
const JSON_LINES_SEEN = 20

export type TextEncoding = 'utf-8' | 'utf-16le' | 'utf-16be'

export function detectCompression(beginning: Uint8Array): Compression {
  const [a, b, c, d] = beginning
  if (a === 0x1f && b === 0x8b) return 'gzip'
  if (a === 0x28 && b === 0xb5 && c === 0x2f && d === 0xfd) return 'zstd'
  // A frame to be skipped, with which some writers begin.
  if (a !== undefined && a >> 4 === 5 && b === 0x2a && c === 0x4d && d === 0x18) return 'zstd'
  return 'none'
}

export function detectEncoding(beginning: Uint8Array): { encoding: TextEncoding; markBytes: number } {
  const [a, b, c] = beginning
  if (a === 0xff && b === 0xfe) return { encoding: 'utf-16le', markBytes: 2 }
  if (a === 0xfe && b === 0xff) return { encoding: 'utf-16be', markBytes: 2 }
  return { encoding: 'utf-8', markBytes: a === 0xef && b === 0xbb && c === 0xbf ? 3 : 0 }
}

export function isParquet(beginning: Buffer): boolean {
  return beginning.toString('latin1', 0, 4) === 'PAR1'
}

/** `sample` is unpacked; `isWhole` says that there is no more. */
export function detectShape(input: {
  sample: Buffer
  isWhole: boolean
  name: string
  contentType: string | null
  compression: Compression
  options: ReadOptions
}): ReadShape {
  const { sample, isWhole, options, compression } = input
  const { encoding, markBytes } = detectEncoding(sample)
  const unmarked = sample.subarray(markBytes)
  const text = encoding === 'utf-8' ? unmarked.toString() : new TextDecoder(encoding).decode(unmarked)
  const told = options.format === 'auto' ? formatOf(input, text) : options.format
  const format = told === 'json-any' ? (isJsonLines(text, isWhole) ? 'ndjson' : 'json') : told
  const shape: ReadShape = { format, compression, header: null }
  if (format === 'csv' || format === 'tsv') {
    const separator = format === 'tsv' ? '\t' : undefined
    const csv = csvShapeOf(text, { isWhole, separator, header: options.header })
    if (csv === undefined) throw unreadable('schema', `its first row has more than ${SAMPLE_BYTES} bytes`)
    return { ...shape, header: csv.header, separator: csv.separator }
  }
  return format === 'json' ? { ...shape, ...jsonLayoutOf(text, options) } : shape
}

function formatOf(
  { sample, name, contentType }: { sample: Buffer; name: string; contentType: string | null },
  text: string,
): RecordFormat | 'json-any' {
  if (isParquet(sample)) return 'parquet'
  if (sample.toString('latin1', 0, 4) === 'Obj\u0001') return 'avro'
  const extension = /\.([a-z0-9]+)(\.(gz|gzip|zst|zstd))?$/.exec(name.toLowerCase())?.[1] ?? ''
  const type = (contentType ?? '').replace(/;.*/s, '').trim().toLowerCase()
  const named =
    (Object.hasOwn(BY_EXTENSION, extension) ? BY_EXTENSION[extension] : undefined) ??
    (Object.hasOwn(BY_TYPE, type) ? BY_TYPE[type] : undefined)
  if (sample.length === 0) return named ?? 'text'
  if (named === 'parquet' || named === 'avro') {
    throw unreadable('corrupt', `it is called ${named}, but does not begin as such a file does`)
  }
  // What a name promises is read as that, and each record that is none is bad by itself.
  if (named !== undefined) return named
  if (text.includes('\0')) {
    throw new TidemarkError('it is neither text nor a format that is known', {
      kind: 'permanent',
      code: 'unknown-format',
      hint: 'Say its format in the settings of the pipeline, or leave such objects out by their prefix.',
    })
  }
  return /^\s*(\{\s*["}]|\[\s*[{\]])/.test(text) ? 'json-any' : 'text'
}

/** More than one line that is an object by itself. */
function isJsonLines(text: string, isWhole: boolean): boolean {
  const lines = text.split('\n', JSON_LINES_SEEN + 1)
  // The last one may go on.
  if (!isWhole || lines.length > JSON_LINES_SEEN) lines.pop()
  let [objects, others] = [0, 0]
  for (const line of lines) {
    if (line.trim() === '') continue
    if (line.trimStart().startsWith('{') && isObject(line)) objects += 1
    else others += 1
  }
  return objects >= 2 && objects >= others
}

function isObject(line: string): boolean {
  try {
    return typeof JSON.parse(line) === 'object'
  } catch {
    return false
  }
}

function jsonLayoutOf(text: string, options: ReadOptions): Pick<ReadShape, 'layout' | 'recordsField'> {
  if (text.trimStart().startsWith('[')) return { layout: 'list' }
  if (options.recordsField !== undefined) return { layout: 'field', recordsField: options.recordsField }
  const lists = listsIn(text)
  const [field, ...others] = lists.filter(({ holds }) => holds === 'objects')
  if (others.length > 0) {
    const names = [field!, ...others].map(({ name }) => `\`${name}\``).join(', ')
    throw new TidemarkError(`the object has several lists of objects: ${names.slice(0, 300)}`, {
      kind: 'permanent',
      code: 'schema',
      hint: 'Say which of them holds the records (recordsField).',
    })
  }
  const name =
    field?.name ?? lists.find((list) => list.holds === 'nothing' && RECORDS_FIELDS.has(list.name))?.name
  return name === undefined ? { layout: 'values' } : { layout: 'field', recordsField: name }
}

/** Fields of the first object that are lists, as far as the text reaches. Once over the text. */
function listsIn(text: string): { name: string; holds: 'objects' | 'nothing' | 'others' }[] {
  const lists: { name: string; holds: 'objects' | 'nothing' | 'others' }[] = []
  const token = /"(?:[^"\\]|\\.)*"|[[\]{}:]/gs
  let depth = 0
  let lastText = ''
  for (let match = token.exec(text); match !== null; match = token.exec(text)) {
    const [found] = match
    if (found.startsWith('"')) lastText = depth === 1 ? found : lastText
    else if (found === '[' || found === '{') {
      if (depth === 1 && found === '[') {
        const next = /\S/.exec(text.slice(token.lastIndex, token.lastIndex + 1_000))?.[0]
        lists.push({
          name: nameOf(lastText),
          holds: next === '{' ? 'objects' : next === ']' ? 'nothing' : 'others',
        })
      }
      depth += 1
    } else if (found !== ':' && --depth === 0) break
  }
  return lists
}

function nameOf(text: string): string {
  try {
    return String(JSON.parse(text))
  } catch {
    return text
  }
}
