/**
 * How settings are written: a section of the configuration belongs to the part of Tidemark that it is about, and says
 * of each key what is allowed and what holds without it. The same names are used in the TOML file, in
 * TIDEMARK_<SECTION>_<KEY> and in code.
 */
import { z } from 'zod'
import { isLoopback } from '../base/loopback.ts'
import { parseBytes, parseRate } from './quantity.ts'

/** What people are told about a setting. */
export type About = {
  /** The end of the sentence "it must be …". */
  allowed: string
  /** What the setting does, in a few words. */
  purpose?: string
  unit?: 'bytes' | 'rate'
  /** What of the value is hidden when it is printed. */
  secret?: 'password' | 'path' | 'all'
  /** People change it on the page of settings, and it holds at once. */
  onPage?: true
}

export const about = z.registry<About>()

type Range = { min: number; max: number }

export type Section<Name extends string = string, Shape extends z.ZodRawShape = z.ZodRawShape> = {
  readonly name: Name
  readonly schema: z.ZodPrefault<z.ZodObject<Shape, z.core.$strict>>
}

export function defineSection<Name extends string, Shape extends z.ZodRawShape>(
  name: Name,
  shape: Shape,
): Section<Name, Shape> {
  return { name, schema: z.strictObject(shape).prefault({} as never) }
}

/** What a section holds once it is read. */
export type SectionValues<S extends Section> = z.output<S['schema']>

export const rate = z.union([z.string(), z.number()]).transform((input, context) => {
  const parsed = parseRate(input)
  if (parsed !== undefined) return parsed
  context.addIssue('no rate')
  return z.NEVER
})

export const bytes = z.union([z.string(), z.number()]).transform((input, context) => {
  const parsed = parseBytes(input)
  if (parsed !== undefined && parsed >= 1) return parsed
  context.addIssue('no size')
  return z.NEVER
})

export const webUrl = z.string().refine((text) => /^https?:$/.test(protocolOf(text) ?? ''))

/** Tokens and mail go there: in the clear only on this machine, where a simulated service may be. */
const serviceUrl = webUrl.refine(
  (text) => protocolOf(text) === 'https:' || (URL.canParse(text) && isLoopback(new URL(text).hostname)),
)

export function whole(
  { min, max }: Range,
  fallback: number,
  purpose: string,
  more: Pick<About, 'onPage'> = {},
) {
  const allowed = `a whole number from ${min} to ${max}`
  return z
    .int()
    .min(min)
    .max(max)
    .default(fallback)
    .register(about, { allowed, purpose, ...more })
}

export function share(fallback: number, purpose: string) {
  const allowed = 'a share from 0 to 1, such as 0.01'
  return z.number().min(0).max(1).default(fallback).register(about, { allowed, purpose })
}

export function choice<const Values extends readonly [string, ...string[]]>(
  values: Values,
  fallback: Values[number],
  purpose: string,
) {
  const allowed = `one of ${values.map((value) => `"${value}"`).join(', ')}`
  return z
    .enum(values)
    .default(fallback as never)
    .register(about, { allowed, purpose })
}

export function text(purpose: string) {
  return z.string().min(1).optional().register(about, { allowed: 'a text', purpose })
}

export function secretText(purpose: string) {
  return z.string().min(1).optional().register(about, { allowed: 'a text', purpose, secret: 'all' })
}

export function url(fallback: string, purpose: string) {
  return serviceUrl
    .default(fallback)
    .register(about, { allowed: 'an https:// address; http:// only of this machine', purpose })
}

export function protocolOf(text: string): string | undefined {
  return URL.canParse(text) ? new URL(text).protocol : undefined
}
