/** What a caller of the control API sent: JSON, checked. */
import type { z } from 'zod'
import { UsageError } from '../base/errors.ts'
import type { SimCall } from './server.ts'

export function bodyOf(call: SimCall): unknown {
  if (call.body.length === 0) return {}
  try {
    return JSON.parse(call.body.toString('utf8'))
  } catch (cause) {
    throw new UsageError('The body is not JSON.', { cause })
  }
}

export function parse<Output>(schema: z.ZodType<Output>, call: SimCall): Output {
  const parsed = schema.safeParse(bodyOf(call))
  if (parsed.success) return parsed.data
  const [first] = parsed.error.issues
  throw new UsageError(
    `${first?.path.map(String).join('.') || 'The body'}: ${first?.message ?? 'makes no sense'}`,
  )
}
