import { Link } from 'wouter-preact'
import type { JobDetail, JobView } from '../../../src/app/schemas.ts'
import { Card } from '../components/card.tsx'
import { formatCount, formatPlural } from '../format.ts'
import { jobLink, jobsLink } from '../links.ts'
import { type GraphNode, graphOf, NODE } from './graph.ts'

const ROLES = {
  parent: 'Came from',
  needs: 'Waits for',
  needed: 'Is waited for by',
  child: 'Brought about',
} as const
const CHILDREN_SHOWN_MAX = 100

export function JobGraph({ job }: { job: JobDetail }) {
  const graph = graphOf(job)
  const childCount =
    job.children.length >= CHILDREN_SHOWN_MAX
      ? `more than ${formatCount(CHILDREN_SHOWN_MAX)} jobs`
      : formatPlural(job.children.length, 'job')
  return (
    <Card
      title="Before and after"
      actions={
        job.children.length > 0 ? (
          <Link href={jobsLink({ parent: job.id })}>Brought about {childCount}</Link>
        ) : null
      }
    >
      {graph ? (
        <div class="graph-scroll">
          <div class="graph" style={{ inlineSize: graph.width, blockSize: graph.height }}>
            <svg class="graph-edges" width={graph.width} height={graph.height} aria-hidden="true">
              <defs>
                <marker
                  id="arrow"
                  viewBox="0 0 8 8"
                  refX="7"
                  refY="4"
                  markerWidth="7"
                  markerHeight="7"
                  orient="auto"
                >
                  <path d="M0 0 8 4 0 8z" />
                </marker>
              </defs>
              {graph.edges.map(({ key, d }) => (
                <path key={key} d={d} marker-end="url(#arrow)" />
              ))}
            </svg>
            <ul>
              {graph.nodes.map((node) => (
                <li
                  key={node.key}
                  style={{
                    insetInlineStart: node.x,
                    insetBlockStart: node.y,
                    inlineSize: NODE.width,
                    blockSize: NODE.height,
                  }}
                >
                  <Node node={node} />
                </li>
              ))}
            </ul>
          </div>
        </div>
      ) : (
        <p class="muted">
          It stands alone: it waits for no job, none waits for it, and it has brought about none.
        </p>
      )}
    </Card>
  )
}

function Node({ node: { job, role, count } }: { node: GraphNode }) {
  if (!job) return <span class="graph-node graph-more">and {formatCount(count ?? 0)} more</span>
  const state = job.stage === null ? '' : STAGE_TEXT[job.stage]
  const text = (
    <>
      <span class="truncate graph-kind">{job.what}</span>
      <span class="truncate graph-state">
        {role === 'self' ? 'This job' : role === 'more' ? '' : ROLES[role]}
        {state ? ` · ${state}` : ''}
      </span>
    </>
  )
  const look = `graph-node stage-${job.stage ?? 'unknown'}`
  if (role === 'self') return <span class={`${look} graph-self`}>{text}</span>
  return (
    <Link class={look} href={jobLink(job.id)}>
      {text}
    </Link>
  )
}

/** In the middle of a line, where a badge would be too much. */
export const STAGE_TEXT: Record<JobView['stage'], string> = {
  ready: 'ready',
  deps: 'waits',
  time: 'waits',
  claimed: 'running',
  done: 'done',
  failed: 'failed',
  canceled: 'cancelled',
  skipped: 'skipped',
}
