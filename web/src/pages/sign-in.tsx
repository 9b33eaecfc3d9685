import { useQueryClient } from '@tanstack/preact-query'
import { useEffect, useState } from 'preact/hooks'
import { useLocation } from 'wouter-preact'
import { api } from '../api.ts'
import { BrandSign } from '../components/brand-sign.tsx'
import { Button } from '../components/button.tsx'
import { Field } from '../components/form.tsx'
import { ApiError } from '../problem.ts'
import { nextPath } from '../session.ts'
import '../styles/sign-in.css'

export function SignInPage() {
  const [, navigate] = useLocation()
  const queries = useQueryClient()
  const [token, setToken] = useState('')
  const [error, setError] = useState<string>()
  const [busy, setBusy] = useState(false)
  useEffect(() => {
    document.title = 'Sign in · Tidemark'
  }, [])
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault()
    setBusy(true)
    setError(undefined)
    try {
      await api.signIn(token.trim())
      await queries.invalidateQueries()
      dispatchEvent(new Event('tidemark:signed-in'))
      navigate(nextPath(location.search), { replace: true })
    } catch (cause) {
      setError(wordsFor(cause))
    } finally {
      setBusy(false)
    }
  }
  return (
    <main class="sign-in">
      <form class="card stack" onSubmit={submit}>
        <BrandSign />
        <div>
          <h1>Sign in to Tidemark</h1>
          <p class="muted">This server is open to other machines, so it wants to know that it is you.</p>
        </div>
        <Field
          label="Token"
          error={error}
          hint="The one that this server was set up with; whoever runs it knows it."
        >
          {(control) => (
            <input
              {...control}
              type="password"
              autocomplete="current-password"
              required
              value={token}
              onInput={(event) => setToken(event.currentTarget.value)}
            />
          )}
        </Field>
        <Button type="submit" kind="primary" busy={busy}>
          Sign in
        </Button>
      </form>
    </main>
  )
}

function wordsFor(cause: unknown): string {
  if (cause instanceof ApiError && cause.status === 401) return 'That is not the token of this server.'
  if (cause instanceof ApiError) return cause.hint ? `${cause.message} ${cause.hint}` : cause.message
  return 'That did not work. Try again.'
}
