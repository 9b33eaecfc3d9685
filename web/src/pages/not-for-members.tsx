/** What a member sees of a page that is for admins. The first page of members stands where admins have the overview. */
import { Redirect, useLocation } from 'wouter-preact'
import { ButtonLink } from '../components/button.tsx'
import { EmptyNote } from '../components/notes.tsx'
import { PageTitle } from '../components/page-title.tsx'
import { navigation } from '../routes.tsx'

export function NotForMembersPage() {
  const [path] = useLocation()
  const [first] = navigation()
  if (path === '/' && first) return <Redirect to={first.href} replace />
  return (
    <>
      <PageTitle title="Not for members" />
      <EmptyNote
        title="This page is for admins"
        action={first ? <ButtonLink href={first.href}>{first.text}</ButtonLink> : undefined}
      >
        Ask whoever looks after this Tidemark, if you need it.
      </EmptyNote>
    </>
  )
}
