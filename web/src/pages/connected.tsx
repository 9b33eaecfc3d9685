/**
 * Where a sign-in at a service ends. The answer comes in the part of the address that is sent nowhere; this page brings it
 * to the server with the session of who is signed in here, so that nobody ends what somebody else has begun.
 */
import { useEffect, useState } from 'preact/hooks'
import type { Connected } from '../../../src/app/accounts/schemas.ts'
import { api } from '../api.ts'
import { ButtonLink } from '../components/button.tsx'
import { EmptyNote, ErrorNote } from '../components/notes.tsx'
import { PageTitle } from '../components/page-title.tsx'
import { ApiError } from '../problem.ts'
import { onSignedOut } from '../session.ts'

type Answer = { state: string; code: string }

/** Here and not in the page: whoever must sign in first comes back to it. */
let waiting: Answer | undefined

export function ConnectedPage() {
  const [made, setMade] = useState<Connected>()
  const [error, setError] = useState<unknown>()
  const [isEmpty, setEmpty] = useState(false)
  useEffect(() => {
    waiting = takeAnswer() ?? waiting
    if (!waiting) return setEmpty(true)
    api.connected(waiting).then(
      (told) => {
        waiting = undefined
        setMade(told)
      },
      (thrown: unknown) => {
        // Kept while somebody signs in; everything else has used it up.
        if (thrown instanceof ApiError && thrown.status === 401) return onSignedOut()
        waiting = undefined
        setError(thrown)
      },
    )
  }, [])
  const title = made?.title ?? (error ? 'Not connected' : isEmpty ? 'Nothing to connect' : 'One moment')
  return (
    <>
      <PageTitle title={title} />
      {error ? <ErrorNote error={error} what="Nothing was connected" /> : null}
      {error ? <BackLink /> : null}
      {made ? (
        <EmptyNote title={made.text} action={<BackLink />}>
          {made.hint}
        </EmptyNote>
      ) : null}
      {isEmpty ? (
        <EmptyNote title="No sign-in waits here" action={<BackLink />}>
          Accounts are connected on the page of settings.
        </EmptyNote>
      ) : null}
    </>
  )
}

function BackLink() {
  return (
    <div class="row">
      <ButtonLink href="/settings" kind="primary">
        Back to Tidemark
      </ButtonLink>
    </div>
  )
}

/** It does not stay in the address, nor in the history. */
function takeAnswer(): Answer | undefined {
  const given = new URLSearchParams(location.hash.slice(1))
  const [state, code] = [given.get('state'), given.get('code')]
  if (!state || !code) return undefined
  history.replaceState(null, '', location.pathname)
  return { state, code }
}
