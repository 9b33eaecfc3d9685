/** All pipelines with their books; where there is none, how to make one. */
import { CopyButton } from '../../../../../web/src/components/copy-button.tsx'
import { EmptyNote, Loaded, Skeleton } from '../../../../../web/src/components/notes.tsx'
import { PageTitle } from '../../../../../web/src/components/page-title.tsx'
import { PipelineCard } from '../pipeline-card.tsx'
import { usePipelines } from '../queries.ts'
import '../styles/ingest.css'

const EXAMPLES = [
  'tidemark ingest add logs --folder /var/spool/logs',
  'tidemark ingest add events --sqs https://sqs.us-east-1.amazonaws.com/123456789012/arrivals --bucket s3://events/',
]

export function PipelinesPage() {
  const all = usePipelines()
  return (
    <>
      <PageTitle
        title="Ingest"
        lead="Objects that a queue announces or a bucket lists, each record found once."
      />
      <Loaded query={all} waiting={<Skeleton height="16rem" />}>
        {({ pipelines }) =>
          pipelines.length === 0 ? (
            <NoPipeline />
          ) : (
            <div class="stack">
              {pipelines.map((status) => (
                <PipelineCard key={status.pipeline} status={status} />
              ))}
            </div>
          )
        }
      </Loaded>
    </>
  )
}

function NoPipeline() {
  return (
    <EmptyNote
      title="There is no pipeline"
      action={
        <ul class="ingest-examples">
          {EXAMPLES.map((command) => (
            <li key={command}>
              <code>{command}</code>
              <CopyButton text={command} label="the command" />
            </li>
          ))}
        </ul>
      }
    >
      A pipeline reads each file of a bucket or a folder once, as a queue announces it. Make one on the
      command line; tidemark ingest add --help names all queues.
    </EmptyNote>
  )
}
