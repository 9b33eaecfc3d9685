import { useRef } from 'preact/hooks'
import { type Counts, heldShare, shareOf } from './share.ts'

export function useShare(streams: readonly Counts[]): number | null {
  const held = useRef<number | null>(null)
  held.current = heldShare(held.current, shareOf(streams))
  return held.current
}
