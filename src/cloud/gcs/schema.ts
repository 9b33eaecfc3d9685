/** What of Cloud Storage's answers is used. Numbers come as text, because they may be larger than JavaScript's. */
import { z } from 'zod'

const digits = z.string().regex(/^\d{1,20}$/)
const moment = z
  .string()
  .transform((text) => Date.parse(text))
  .pipe(z.number())
  .optional()

export const objectSchema = z.object({
  name: z.string().min(1),
  generation: digits,
  size: digits.transform(Number),
  updated: moment,
  contentType: z.string().optional(),
  contentEncoding: z.string().optional(),
  /** Objects that were put together from others have none. */
  md5Hash: z.string().optional(),
  metadata: z.record(z.string(), z.string()).optional(),
})

export type GcsObject = z.output<typeof objectSchema>

export const OBJECT_FIELDS = 'name,generation,size,updated,contentType,contentEncoding,md5Hash'

export const objectListSchema = z.object({
  items: z.array(objectSchema).default([]),
  nextPageToken: z.string().min(1).optional(),
})

export const rewriteSchema = z.object({ done: z.boolean(), rewriteToken: z.string().min(1).optional() })
