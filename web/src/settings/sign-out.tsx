import { useState } from 'preact/hooks'
import { api } from '../api.ts'
import { Button } from '../components/button.tsx'
import { ErrorNote } from '../components/notes.tsx'
import { forgetSession } from '../session.ts'

export function SignOut() {
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState<unknown>()
  const signOut = async (): Promise<void> => {
    setBusy(true)
    setError(undefined)
    try {
      await api.signOut()
      forgetSession()
      // The page is loaded anew: no mail stays in its memory.
      location.assign('/sign-in')
    } catch (cause) {
      setError(cause)
      setBusy(false)
    }
  }
  return (
    <>
      <div class="row theme-row">
        <span>You are signed in</span>
        <Button small busy={busy} onClick={() => void signOut()}>
          Sign out
        </Button>
      </div>
      {error ? <ErrorNote error={error} /> : null}
    </>
  )
}
