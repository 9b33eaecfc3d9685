/** Values from schemas: those that fit, at the edges above all, and those that nobody would expect. */
import fc from 'fast-check'
import type { Schema } from './document.ts'

const LENGTH_MAX = 5_000

/** What breaks parsers, databases, paths and objects. */
export const NASTY: readonly string[] = [
  ...['', ' ', '\0', 'a\0b', '\u{d800}', '\u{dfff}x', '\u{fffe}', '\u{202e}txt', '\r\nx-evil: 1', '\t'],
  ...['NaN', 'Infinity', '-0', '1e999', '9007199254740993', '-9223372036854775809', '0x7f', '١٢'],
  ...['__proto__', 'constructor', 'toString', 'hasOwnProperty', '[object Object]', 'undefined', 'null'],
  ...['..', '../../etc/passwd', '..%2f..%2f', '/', '\\', '//evil.example', '%', '%00', '%ff', 'file:///etc'],
  ...["' OR 1=1 --", '"; DROP TABLE jobs; --', '%_', '$1', '{{7*7}}', '<script>alert(1)</script>', '*', '('],
  ...['((((((((((((((((((((', '"'.repeat(99), 'from:'.repeat(99), '-'.repeat(500), '{a '.repeat(200)],
  ...['x'.repeat(321), 'x'.repeat(501), 'é'.repeat(2_001), '🌊'.repeat(600)],
]

export const text = fc.oneof(
  fc.constantFrom(...NASTY),
  fc.string({ maxLength: 40 }),
  fc.string({ unit: 'binary', maxLength: 40 }),
)

/** Fits the schema, as far as it says what fits. */
export function fitting(schema: Schema): fc.Arbitrary<unknown> {
  if ('const' in schema) return fc.constant(schema.const)
  if (Array.isArray(schema.enum)) return fc.constantFrom(...schema.enum)
  if (Array.isArray(schema.anyOf)) return fc.oneof(...schema.anyOf.map((one) => fitting(one as Schema)))
  switch (schema.type) {
    case 'string':
      return typeof schema.pattern === 'string'
        ? fc.stringMatching(new RegExp(schema.pattern))
        : texts(schema)
    case 'integer':
    case 'number':
      return numbers(schema)
    case 'boolean':
      return fc.boolean()
    case 'array': {
      const { minItems = 0, items = {} } = schema as { minItems?: number; items?: Schema }
      return fc.array(fitting(items), { minLength: minItems, maxLength: minItems + 3 })
    }
    case 'object':
      return objects(schema)
    default:
      return fc.jsonValue({ maxDepth: 3 })
  }
}

function texts({ minLength = 0, maxLength = LENGTH_MAX }: { minLength?: number; maxLength?: number }) {
  const longest = Math.min(maxLength, LENGTH_MAX)
  const edges = [minLength, minLength + 1, longest - 1, longest].filter((n) => n >= minLength && n <= longest)
  return fc.oneof(
    fc.string({ minLength, maxLength: Math.min(longest, 40) }),
    fc.constantFrom(...edges).map((n) => 'x'.repeat(n)),
  )
}

function numbers(schema: { minimum?: number; maximum?: number; type?: unknown }) {
  const { minimum = Number.MIN_SAFE_INTEGER, maximum = Number.MAX_SAFE_INTEGER } = schema
  const edges = [minimum, minimum + 1, maximum - 1, maximum, 0, 1, -1]
  return fc.oneof(
    fc.constantFrom(...edges.filter((n) => n >= minimum && n <= maximum)),
    fc.maxSafeInteger().map((n) => Math.min(maximum, Math.max(minimum, n))),
    fc.integer({ min: Math.max(minimum, 0), max: Math.min(maximum, 100) }),
  )
}

function objects({
  properties = {},
  required = [],
}: {
  properties?: Record<string, Schema>
  required?: string[]
}) {
  const model = Object.fromEntries(Object.entries(properties).map(([name, one]) => [name, fitting(one)]))
  return fc.record(model, { requiredKeys: required })
}

/** JSON that has little or nothing to do with the schema: a field changed, a wrong kind, too deep, cut off. */
export function misfitting(schema: Schema): fc.Arbitrary<string> {
  const spoilt = fc
    .tuple(fitting(schema), fc.constantFrom(...Object.keys(schema.properties ?? { x: 1 }), '__proto__'), wild)
    .map(
      ([value, name, other]) =>
        `${JSON.stringify(value).replace(/\}$/, '')},${JSON.stringify(name)}:${other}}`,
    )
  return fc.oneof(
    spoilt,
    wild,
    text,
    fc.integer({ min: 0, max: 20_000 }).map((depth) => '['.repeat(depth)),
    fc.integer({ min: 0, max: 60 }).map((depth) => `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`),
    fitting(schema).map((value) => JSON.stringify(value).slice(0, -1)),
  )
}

const wild = fc.oneof(
  fc.json({ maxDepth: 5 }),
  fc.constantFrom(
    '1e999',
    '-1',
    '99999999999999999999',
    '""',
    '"\\u0000"',
    '"\\ud800"',
    '{"__proto__":{"a":1}}',
  ),
  text.map((one) => JSON.stringify(one)),
)
