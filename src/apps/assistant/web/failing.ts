/** Something that is asked for by hand and answers with more than a sentence: busy while it goes on, a toast where it fails. */
import { useState } from 'preact/hooks'
import { showToast } from '../../../../web/src/components/toast-store.ts'

export function useFailing(run: () => Promise<void>): { start: () => Promise<void>; busy: boolean } {
  const [busy, setBusy] = useState(false)
  const start = async (): Promise<void> => {
    setBusy(true)
    try {
      await run()
    } catch (error) {
      showToast(error instanceof Error ? error.message : 'That did not work.', { tone: 'danger' })
    } finally {
      setBusy(false)
    }
  }
  return { start, busy }
}
