import { useQueryClient } from '@tanstack/preact-query'
import { useEffect, useState } from 'preact/hooks'
import { useLocation } from 'wouter-preact'
import { api } from '../api.ts'
import { BrandSign } from '../components/brand-sign.tsx'
import { Button } from '../components/button.tsx'
import { Field } from '../components/form.tsx'
import { ApiError } from '../problem.ts'
import { keepSession, nextPath, takeCode } from '../session.ts'
import '../styles/sign-in.css'

export function SignInPage() {
  const [, navigate] = useLocation()
  const queries = useQueryClient()
  const [token, setToken] = useState('')
  const [error, setError] = useState<string>()
  const [busy, setBusy] = useState(false)
  const enter = async (secret: { token: string } | { code: string }): Promise<void> => {
    setBusy(true)
    setError(undefined)
    try {
      const { session, user } = await api.signIn(secret)
      keepSession(session, user)
      await queries.invalidateQueries()
      dispatchEvent(new Event('tidemark:signed-in'))
      navigate(nextPath(location.search), { replace: true })
    } catch (cause) {
      setError(wordsFor(cause))
    } finally {
      setBusy(false)
    }
  }
  useEffect(() => {
    document.title = 'Sign in · Tidemark'
    const follow = (): void => {
      const code = takeCode()
      if (code !== undefined) void enter({ code })
    }
    follow()
    // Who is on this page already and opens the printed address changes nothing but what is behind the #.
    addEventListener('hashchange', follow)
    return () => removeEventListener('hashchange', follow)
  }, [])
  const submit = (event: Event): void => {
    event.preventDefault()
    void enter({ token: token.trim() })
  }
  return (
    <main class="sign-in">
      <form class="card stack" onSubmit={submit}>
        <BrandSign />
        <div>
          <h1>Sign in to Tidemark</h1>
          <p class="muted">
            Open the address that <code>tidemark sign-in</code> prints on the machine of the server, or give
            its token.
          </p>
        </div>
        <Field
          label="Token"
          error={error}
          hint="It is in the file server.token of Tidemark’s home folder, or the one that was set there."
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
  if (cause instanceof ApiError && cause.code === 'sign-in') return 'That is not the token of this server.'
  if (cause instanceof ApiError) return cause.hint ? `${cause.message} ${cause.hint}` : cause.message
  return 'That did not work. Try again.'
}
