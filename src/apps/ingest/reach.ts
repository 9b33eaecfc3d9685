/**
 * Which objects a message may name. Whoever can write to a queue or an inbox is not thereby allowed to read whatever the
 * pipeline's keys open: only what is listed, and what was said to be allowed besides. Files are bounded by their folder
 * and https addresses by their hosts, where they are read.
 */
import type { Refusal } from './contract.ts'
import type { PipelineConfig } from './pipeline.ts'

export function isWithinReach(
  { location, allow }: Pick<PipelineConfig, 'location' | 'allow'>,
  uri: string,
): boolean {
  if (!/^(s3|gs):/.test(uri)) return true
  return [location, ...allow].some((address) => address !== null && uri.startsWith(address))
}

/** What this pipeline has put there itself. */
export function isLeftOut(
  { after, leftOut }: Pick<PipelineConfig, 'after' | 'leftOut'>,
  uri: string,
): boolean {
  const places = after.do === 'move' ? [...leftOut, after.to] : leftOut
  return places.some((address) => uri.startsWith(address))
}

export function outOfReach(uri: string): Refusal {
  const why = 'it is neither below what is listed (--bucket) nor below what is allowed besides (--allow)'
  return { code: 'not-allowed', reason: `${uri}: ${why}` }
}
