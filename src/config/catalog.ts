/** The settings as a list, for everything that goes over all of them. */
import { z } from 'zod'
import { formatBytes, formatRate, type Rate } from './quantity.ts'
import { maskAs } from './secret.ts'
import { type About, about, type Section } from './section.ts'
import type { Config } from './settings.ts'

export type CatalogEntry = {
  section: string
  name: string
  /** `engine.workers` */
  key: string
  /** `TIDEMARK_ENGINE_WORKERS` */
  variable: string
  about: About
  /** How text from a variable or a flag becomes what the file would hold. */
  kind: 'text' | 'number' | 'flag' | 'list'
}

/** All sections together, as a list and as a schema. */
export class Catalog {
  readonly schema: z.ZodObject
  readonly entries: readonly CatalogEntry[]
  readonly #byKey: ReadonlyMap<string, CatalogEntry>

  /** A section that comes twice is one: two apps may work with one service. */
  constructor(sections: readonly Section[]) {
    const byName = new Map(sections.map((section) => [section.name, section.schema]))
    this.schema = z.strictObject(Object.fromEntries(byName))
    this.entries = [...byName].flatMap(([section, schema]) =>
      Object.entries(schema.unwrap().shape as Record<string, z.ZodType>).map(([name, setting]) => ({
        section,
        name,
        key: `${section}.${name}`,
        variable: `TIDEMARK_${section}_${name}`.toUpperCase(),
        about: aboutOf(setting),
        kind: entryKind(setting),
      })),
    )
    this.#byKey = new Map(this.entries.map((entry) => [entry.key, entry]))
  }

  /** With defaults for what is left out. Throws what zod throws. */
  parse(raw: unknown): Config {
    return this.schema.parse(raw) as unknown as Config
  }

  find(key: string): CatalogEntry | undefined {
    return this.#byKey.get(key)
  }

  /** What is known about the setting or the part of it at a path that zod reported. */
  aboutPath(path: readonly PropertyKey[]): About | undefined {
    let schema: z.ZodType | undefined = this.schema
    let known: About | undefined
    for (const part of path) {
      const inner: z.ZodType = unwrap(schema)
      if (inner instanceof z.ZodArray) schema = inner.element as z.ZodType
      else if (inner instanceof z.ZodObject) schema = inner.shape[String(part)] as z.ZodType | undefined
      else break
      if (!schema) break
      known = about.get(schema) ?? known
    }
    return known
  }

  /** The keys that exist in the table at a path; none where there is no table. */
  keysAt(path: readonly PropertyKey[]): string[] {
    let schema: z.ZodType = this.schema
    for (const part of path) {
      const inner = unwrap(schema)
      if (inner instanceof z.ZodArray) schema = inner.element as z.ZodType
      else if (inner instanceof z.ZodObject && String(part) in inner.shape) {
        schema = inner.shape[String(part)] as z.ZodType
      } else return []
    }
    const inner = unwrap(schema)
    return inner instanceof z.ZodObject ? Object.keys(inner.shape) : []
  }
}

/** A value as it is printed: in its unit, with secrets hidden. */
export function displayValue(entry: CatalogEntry, value: unknown): string {
  if (value === undefined) return '(not set)'
  const { unit } = entry.about
  if (unit === 'bytes' && typeof value === 'number') return formatBytes(value)
  if (unit === 'rate') return formatRate(value as Rate)
  const hidden = hideSecret(entry, value)
  return typeof hidden === 'string' ? hidden : JSON.stringify(hidden)
}

/** The value itself, for programs, with secrets hidden. */
export function hideSecret(entry: CatalogEntry, value: unknown): unknown {
  if (typeof value !== 'string') return value
  return maskAs(entry.about.secret, value)
}

function aboutOf(schema: z.ZodType): About {
  return about.get(schema) ?? { allowed: 'another value' }
}

function entryKind(schema: z.ZodType): CatalogEntry['kind'] {
  const inner = unwrap(schema)
  if (inner instanceof z.ZodNumber) return 'number'
  if (inner instanceof z.ZodBoolean) return 'flag'
  return inner instanceof z.ZodArray ? 'list' : 'text'
}

function unwrap(schema: z.ZodType): z.ZodType {
  let inner = schema
  while (inner instanceof z.ZodDefault || inner instanceof z.ZodPrefault || inner instanceof z.ZodOptional) {
    inner = inner.unwrap() as z.ZodType
  }
  return inner
}
