/** An Avro schema as a function that reads one value. Lengths that the bytes state are held against the bytes there are. */
import { isUtf8 } from 'node:buffer'
import { unreadable } from './byte-stream.ts'
import { DEPTH_MAX } from './item-sink.ts'

export type AvroBytes = { bytes: Buffer; at: number; depth: number }
export type AvroDecoder = (from: AvroBytes) => unknown

type Fields = Readonly<Record<string, unknown>>
type Named = Map<string, { decode: AvroDecoder | undefined }>

const SCHEMA_DEPTH_MAX = 100
const DAY_MS = 86_400_000
const TIME_MAX_MS = 8.64e15

export function avroDecoderOf(schema: string): AvroDecoder {
  let parsed: unknown
  try {
    parsed = JSON.parse(schema)
  } catch (thrown) {
    throw unreadable('schema', 'the schema of the Avro file is not JSON', thrown)
  }
  return compiled(parsed, { named: new Map(), space: '', depth: 0 })
}

type Scope = { named: Named; space: string; depth: number }

function compiled(schema: unknown, scope: Scope): AvroDecoder {
  if (scope.depth > SCHEMA_DEPTH_MAX)
    throw unreadable('schema', 'the schema of the Avro file is nested too deep')
  const inner = { ...scope, depth: scope.depth + 1 }
  if (typeof schema === 'string') return ofName(schema, scope)
  if (Array.isArray(schema)) return union(schema.map((branch) => compiled(branch, inner)))
  if (typeof schema !== 'object' || schema === null) throw unreadable('schema', 'the Avro file has no schema')
  const fields = schema as Fields
  switch (fields.type) {
    case 'record':
    case 'error':
      return record(fields, inner)
    case 'enum':
      return enumeration(fields, inner)
    case 'fixed':
      return fixed(fields, inner)
    case 'array':
      return list(compiled(fields.items, inner))
    case 'map':
      return map(compiled(fields.values, inner))
    default:
      return logical(compiled(fields.type, inner), fields)
  }
}

// --- Types ---------------------------------------------------------------------------------------------------------

const PRIMITIVES: Readonly<Record<string, AvroDecoder>> = {
  null: () => null,
  boolean: (from) => taken(from, 1)[0] !== 0,
  int: (from) => number(long(from)),
  long: (from) => number(long(from)),
  float: (from) => finite(taken(from, 4).readFloatLE(0)),
  double: (from) => finite(taken(from, 8).readDoubleLE(0)),
  bytes: (from) => taken(from, length(from)).toString('base64'),
  string: (from) => {
    const bytes = taken(from, length(from))
    return isUtf8(bytes) ? bytes.toString() : bytes.toString('base64')
  },
}

function ofName(name: string, { named, space }: Scope): AvroDecoder {
  if (Object.hasOwn(PRIMITIVES, name)) return PRIMITIVES[name]!
  const found = named.get(name) ?? named.get(`${space}.${name}`)
  if (found === undefined) throw unreadable('schema', `the Avro file has no type ${name.slice(0, 100)}`)
  // A type may contain itself, and is then known only later.
  return (from) => nested(from, found.decode!)
}

function record(fields: Fields, scope: Scope): AvroDecoder {
  const { entry, space } = register(fields, scope)
  if (!Array.isArray(fields.fields)) throw unreadable('schema', 'a record of the Avro file has no fields')
  const members = (fields.fields as readonly Fields[]).map((field) => ({
    name: String(field?.name),
    decode: compiled(field?.type, { ...scope, space }),
  }))
  entry.decode = (from) => {
    const value: Record<string, unknown> = {}
    for (const { name, decode } of members) put(value, name, decode(from))
    return value
  }
  return entry.decode
}

function enumeration(fields: Fields, scope: Scope): AvroDecoder {
  const symbols = Array.isArray(fields.symbols) ? fields.symbols.map(String) : []
  const { entry } = register(fields, scope)
  entry.decode = (from) => chosen(symbols, Number(long(from)))
  return entry.decode
}

function fixed(fields: Fields, scope: Scope): AvroDecoder {
  const { entry } = register(fields, scope)
  const size = Number(fields.size)
  if (!Number.isSafeInteger(size) || size < 0)
    throw unreadable('schema', 'a type of the Avro file has no size')
  entry.decode = logical((from) => taken(from, size).toString('base64'), fields)
  return entry.decode
}

function register(
  fields: Fields,
  { named, space }: Scope,
): { entry: { decode: AvroDecoder | undefined }; space: string } {
  const name = String(fields.name)
  const own = typeof fields.namespace === 'string' ? fields.namespace : space
  const full = name.includes('.') || own === '' ? name : `${own}.${name}`
  const entry = { decode: undefined as AvroDecoder | undefined }
  named.set(full, entry)
  return { entry, space: full.includes('.') ? full.slice(0, full.lastIndexOf('.')) : '' }
}

function union(branches: readonly AvroDecoder[]): AvroDecoder {
  return (from) => chosen(branches, Number(long(from)))(from)
}

function list(item: AvroDecoder): AvroDecoder {
  return (from) => {
    const items: unknown[] = []
    for (let count = blockCount(from); count > 0; count = blockCount(from)) {
      for (let left = count; left > 0; left--) items.push(nested(from, item))
    }
    return items
  }
}

function map(value: AvroDecoder): AvroDecoder {
  return (from) => {
    const entries: Record<string, unknown> = {}
    for (let count = blockCount(from); count > 0; count = blockCount(from)) {
      for (let left = count; left > 0; left--) {
        put(entries, taken(from, length(from)).toString(), nested(from, value))
      }
    }
    return entries
  }
}

function logical(decode: AvroDecoder, fields: Fields): AvroDecoder {
  const scale = typeof fields.scale === 'number' ? fields.scale : 0
  switch (fields.logicalType) {
    case 'timestamp-millis':
    case 'local-timestamp-millis':
      return (from) => time(decode(from), 1)
    case 'timestamp-micros':
    case 'local-timestamp-micros':
      return (from) => time(decode(from), 1_000)
    case 'timestamp-nanos':
    case 'local-timestamp-nanos':
      return (from) => time(decode(from), 1_000_000)
    case 'date':
      return (from) => {
        const at = time(decode(from), 1 / DAY_MS)
        return typeof at === 'string' ? at.slice(0, 10) : at
      }
    case 'decimal':
      return (from) => decimal(decode(from), scale)
    default:
      return decode
  }
}

// --- Values --------------------------------------------------------------------------------------------------------

function time(value: unknown, perMs: number): unknown {
  const at = Math.floor(Number(value) / perMs)
  return Math.abs(at) <= TIME_MAX_MS ? new Date(at).toISOString() : value
}

function decimal(value: unknown, scale: number): unknown {
  if (typeof value !== 'string' || scale < 0 || scale > 1_000) return value
  const bytes = Buffer.from(value, 'base64')
  if (bytes.length === 0 || bytes.length > 1_000) return value
  const digits = BigInt.asIntN(bytes.length * 8, BigInt(`0x${bytes.toString('hex')}`))
  const text = String(digits < 0n ? -digits : digits).padStart(scale + 1, '0')
  const sign = digits < 0n ? '-' : ''
  return scale === 0 ? sign + text : `${sign}${text.slice(0, -scale)}.${text.slice(-scale)}`
}

/** JSON has no word for the others. */
function finite(value: number): number | string {
  return Number.isFinite(value) ? value : String(value)
}

function number(value: bigint): number | string {
  const number = Number(value)
  return Number.isSafeInteger(number) ? number : String(value)
}

function nested(from: AvroBytes, decode: AvroDecoder): unknown {
  if (++from.depth > DEPTH_MAX) throw new RangeError('nested too deep')
  const value = decode(from)
  from.depth -= 1
  return value
}

function put(value: Record<string, unknown>, name: string, field: unknown): void {
  // Assigning to this name would set a prototype.
  if (name === '__proto__') Object.defineProperty(value, name, { value: field, enumerable: true })
  else value[name] = field
}

function chosen<Choice>(choices: readonly Choice[], at: number): Choice {
  const choice = choices[at]
  if (choice === undefined) throw new RangeError('a choice that the schema does not have')
  return choice
}

function taken(from: AvroBytes, count: number): Buffer {
  const end = from.at + count
  if (end > from.bytes.length) throw new RangeError('the block ends within a value')
  const bytes = from.bytes.subarray(from.at, end)
  from.at = end
  return bytes
}

function long(from: AvroBytes): bigint {
  let [low, scale] = [0, 1]
  for (let bytes = 0; bytes < 7; bytes++) {
    const byte = from.bytes[from.at++]
    if (byte === undefined) throw new RangeError('the block ends within a number')
    low += (byte & 0x7f) * scale
    scale *= 128
    if (byte < 0x80) return BigInt(low % 2 === 0 ? low / 2 : -(low + 1) / 2)
  }
  let value = BigInt(low)
  for (let shift = 49n; shift < 70n; shift += 7n) {
    const byte = from.bytes[from.at++]
    if (byte === undefined) throw new RangeError('the block ends within a number')
    value |= BigInt(byte & 0x7f) << shift
    if (byte < 0x80) return BigInt.asIntN(64, (value >> 1n) ^ -(value & 1n))
  }
  throw new RangeError('a number without an end')
}

function length(from: AvroBytes): number {
  const value = Number(long(from))
  if (value < 0 || value > from.bytes.length) throw new RangeError('a length that is not possible')
  return value
}

function blockCount(from: AvroBytes): number {
  let count = Number(long(from))
  if (count < 0) {
    count = -count
    long(from)
  }
  // Items without a byte could be as many as somebody likes.
  if (count > from.bytes.length - from.at) throw new RangeError('a list of more items than bytes')
  return count
}
