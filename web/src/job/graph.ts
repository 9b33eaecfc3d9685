/** Where the parts of a job's graph stand: what it needs on the left, what comes of it on the right. */
import type { JobDetail } from '../../../src/app/schemas.ts'

export type LinkedJob = JobDetail['children'][number]
export type GraphNode = {
  key: string
  x: number
  y: number
  role: 'parent' | 'needs' | 'self' | 'needed' | 'child' | 'more'
  /** Missing for `more`, which stands for `count` others. */
  job?: { id: number; what: string; stage: LinkedJob['stage'] | null }
  count?: number
}
export type Graph = { width: number; height: number; nodes: GraphNode[]; edges: { key: string; d: string }[] }

export const NODE = { width: 184, height: 44 }
const GAP = { x: 72, y: 12 }
/** On a side: a small picture, not a list. */
const NODES_MAX = 7

type GraphInput = Pick<
  JobDetail,
  'id' | 'what' | 'stage' | 'parent' | 'dependsOn' | 'dependents' | 'children'
>
type Entry = Omit<GraphNode, 'x' | 'y'>

export function graphOf(job: GraphInput): Graph | undefined {
  const { parent } = job
  const needs = job.dependsOn.filter(({ id }) => id !== parent)
  const before: Entry[] = [
    ...(parent === null ? [] : [parentEntry(parent, job.dependsOn)]),
    ...needs.map((one) => entry('needs', one)),
  ]
  const childIds = new Set(job.children.map(({ id }) => id))
  const after: Entry[] = [
    ...job.children.map((one) => entry('child', one)),
    ...job.dependents.filter(({ id }) => !childIds.has(id)).map((one) => entry('needed', one)),
  ]
  if (before.length === 0 && after.length === 0) return undefined
  const sides = [shortened(before), shortened(after)] as const
  const rows = Math.max(1, sides[0].length, sides[1].length)
  const height = rows * (NODE.height + GAP.y) - GAP.y
  const hasBefore = before.length > 0
  const selfX = hasBefore ? NODE.width + GAP.x : 0
  const self = { key: 'self', x: selfX, y: (height - NODE.height) / 2, role: 'self', job } as const
  const left = placed(sides[0], 0, height)
  const right = placed(sides[1], selfX + NODE.width + GAP.x, height)
  return {
    width: selfX + NODE.width + (after.length > 0 ? GAP.x + NODE.width : 0),
    height,
    nodes: [...left, self, ...right],
    edges: [
      ...left.map((node) => ({ key: node.key, d: edge(node, self) })),
      ...right.map((node) => ({ key: node.key, d: edge(self, node) })),
    ],
  }
}

/** Of a parent only its number is known, unless the job waits for it as well. */
function parentEntry(id: number, others: readonly LinkedJob[]): Entry {
  const known = others.find((one) => one.id === id)
  return {
    key: `parent ${id}`,
    role: 'parent',
    job: { id, what: known?.what ?? `Job ${id}`, stage: known?.stage ?? null },
  }
}

function entry(role: 'needs' | 'needed' | 'child', { id, what, stage }: LinkedJob): Entry {
  return { key: `${role} ${id}`, role, job: { id, what, stage } }
}

function shortened(entries: readonly Entry[]): Entry[] {
  if (entries.length <= NODES_MAX) return [...entries]
  // What failed or still runs says more than what is done.
  const ranked = [...entries].sort((a, b) => rankOf(a) - rankOf(b)).slice(0, NODES_MAX - 1)
  const count = entries.length - ranked.length
  return [...ranked, { key: 'more', role: 'more', count }]
}

function rankOf({ job, role }: Entry): number {
  if (role === 'parent' || job?.stage === 'failed') return 0
  return job?.stage === 'claimed' ? 1 : job?.stage === 'done' || job?.stage === 'skipped' ? 3 : 2
}

function placed(entries: readonly Entry[], x: number, height: number): GraphNode[] {
  const size = NODE.height + GAP.y
  const top = (height - (entries.length * size - GAP.y)) / 2
  return entries.map((one, at) => ({ ...one, key: `${x} ${one.key}`, x, y: top + at * size }))
}

function edge(from: { x: number; y: number }, to: { x: number; y: number }): string {
  const start = { x: from.x + NODE.width, y: from.y + NODE.height / 2 }
  const end = { x: to.x, y: to.y + NODE.height / 2 }
  const middle = (start.x + end.x) / 2
  return `M${start.x} ${start.y}C${middle} ${start.y} ${middle} ${end.y} ${end.x} ${end.y}`
}
