/** The shell: navigation, the verdict above every page, and the page itself. */
import type { ComponentChildren } from 'preact'
import { useErrorBoundary } from 'preact/hooks'
import { Route, Switch, useLocation } from 'wouter-preact'
import { appPages } from '../../src/apps/pages.ts'
import { ConfirmDialog } from './components/confirm.tsx'
import { ErrorNote } from './components/notes.tsx'
import { Toasts } from './components/toasts.tsx'
import { Header, OfflineNote } from './header.tsx'
import { KeysHelp } from './keys-help.tsx'
import { Navigation } from './navigation.tsx'
import { notForMembers as NotForMembers, notFound as NotFound, PAGES, signIn as SignIn } from './routes.tsx'
import { isMember } from './session.ts'

export function App() {
  const [path] = useLocation()
  return path === '/sign-in' ? <SignIn /> : <Shell path={path} />
}

function Shell({ path }: { path: string }) {
  // Always the same ones in the same order, as hooks must be.
  for (const { useKeys } of appPages) useKeys?.(path)
  return (
    <div class="shell">
      <a class="skip-link" href="#main">
        Skip to the page
      </a>
      <Navigation />
      <Header />
      <main id="main" class="main" tabIndex={-1}>
        <Boundary key={path}>
          <Switch>
            {PAGES.map(({ path: at, page: Page, members }) => (
              <Route key={at} path={at}>
                {members || !isMember() ? <Page /> : <NotForMembers />}
              </Route>
            ))}
            <Route>
              <NotFound />
            </Route>
          </Switch>
        </Boundary>
      </main>
      <OfflineNote />
      <Toasts />
      <ConfirmDialog />
      <KeysHelp />
    </div>
  )
}

function Boundary({ children }: { children: ComponentChildren }) {
  const [error, reset] = useErrorBoundary()
  if (!error) return <>{children}</>
  return <ErrorNote error={error} what="This page has a fault" retry={reset} />
}
