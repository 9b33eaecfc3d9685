import { searchLink } from '../../../src/apps/mail/web/links.ts'
import { ButtonLink } from '../components/button.tsx'
import { EmptyNote } from '../components/notes.tsx'
import { PageTitle } from '../components/page-title.tsx'
import { overviewLink } from '../links.ts'

export function NotFoundPage() {
  return (
    <>
      <PageTitle title="There is no such page" />
      <EmptyNote
        title="The address leads nowhere"
        action={
          <div class="row">
            <ButtonLink href={overviewLink()} kind="primary">
              To the overview
            </ButtonLink>
            <ButtonLink href={searchLink()}>Search the mail</ButtonLink>
          </div>
        }
      >
        It may be from an older version, or miss a part at its end.
      </EmptyNote>
    </>
  )
}
