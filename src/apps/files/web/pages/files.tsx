/** The folders that are kept in step with OneDrive, each with how it stands and what needs somebody. */
import { ButtonLink } from '../../../../../web/src/components/button.tsx'
import { Card } from '../../../../../web/src/components/card.tsx'
import { EmptyNote, ErrorNote, Skeleton } from '../../../../../web/src/components/notes.tsx'
import { PageTitle } from '../../../../../web/src/components/page-title.tsx'
import { FolderCard } from '../folder-card.tsx'
import { transfersOf, workText } from '../folder-state.ts'
import { useFiles } from '../queries.ts'
import '../styles/files.css'

export function FilesPage() {
  const { data, error, refetch } = useFiles()
  const all = data?.folders.reduce(
    (sum, { open }) => ({
      unplanned: sum.unplanned + open.unplanned,
      inWork: sum.inWork + open.inWork,
      waiting: sum.waiting + open.waiting,
      reported: sum.reported + open.reported,
    }),
    { unplanned: 0, inWork: 0, waiting: 0, reported: 0 },
  )
  const work = data && all ? workText({ open: all }, data.transfers) : undefined
  return (
    <>
      <PageTitle
        title="Files"
        lead={
          work === undefined ? (
            <Skeleton width="16rem" />
          ) : work === '' ? (
            'Nothing is on the way.'
          ) : (
            `${work}.`
          )
        }
      >
        {data && data.folders.length > 0 ? (
          <ButtonLink href="/settings#add-folder" icon="folder" small>
            Add a folder
          </ButtonLink>
        ) : null}
      </PageTitle>
      {error && !data ? <ErrorNote error={error} retry={refetch} /> : null}
      {!data && !error ? (
        <Card>
          <Skeleton height="12rem" />
        </Card>
      ) : null}
      {data?.folders.length === 0 ? (
        <EmptyNote
          title="No folder is kept in step yet"
          action={
            <ButtonLink href="/settings#connect-onedrive" kind="primary" icon="person">
              Connect a OneDrive account
            </ButtonLink>
          }
        >
          Connect an account and choose a folder: from then on both sides agree, and nothing that anyone saved
          is lost.
        </EmptyNote>
      ) : null}
      <div class="folder-cards">
        {data?.folders.map((folder) => (
          <FolderCard
            key={folder.name}
            folder={folder}
            transfers={transfersOf(data.transfers, folder.name)}
          />
        ))}
      </div>
    </>
  )
}
