/** How the live connection of this page stands, for whoever shows it or asks less often while it stands. */
import type { LiveState } from './live.ts'
import { isMember } from './session.ts'
import { createStore, useStore } from './store.ts'

export const liveState = createStore<LiveState>('connecting')
export const useLive = (): LiveState => useStore(liveState)

/** Members hear of what is theirs while the connection stands, and look only lest something was missed. */
const HEARD_LOOK_MS = 60_000

/** How often to look at what members are told of. */
export const useLookMs = (ms: number): number => {
  const live = useLive()
  return isMember() && live === 'live' ? HEARD_LOOK_MS : ms
}
