import assert from 'node:assert/strict'
import { test } from 'node:test'
import { graphOf, type LinkedJob } from './graph.ts'

const linked = (id: number, stage: LinkedJob['stage'] = 'done'): LinkedJob => ({
  id,
  kind: 'mail.fetch',
  what: 'Fetching 9 messages',
  state: stage === 'failed' ? 'failed' : 'done',
  stage,
  error: null,
})
const JOB = {
  id: 1,
  what: 'Listing slice',
  stage: 'claimed' as const,
  parent: null,
  dependsOn: [],
  dependents: [],
  children: [],
}

test('a job that stands alone has no graph', () => {
  assert.equal(graphOf(JOB), undefined)
})

test('what a job needs stands before it, what comes of it behind, each once', () => {
  const graph = graphOf({
    ...JOB,
    parent: 2,
    dependsOn: [linked(2), linked(3)],
    children: [linked(4)],
    dependents: [linked(4), linked(5)],
  })!
  const roles = graph.nodes.map(({ role, job }) => `${role} ${job?.id}`)
  assert.deepEqual(roles, ['parent 2', 'needs 3', 'self 1', 'child 4', 'needed 5'])
  const self = graph.nodes.find(({ role }) => role === 'self')!
  assert.ok(
    graph.nodes.filter(({ x }) => x < self.x).every(({ role }) => role === 'parent' || role === 'needs'),
  )
  assert.equal(graph.edges.length, 4)
})

test('of many jobs those that need a look are shown, and the rest is counted', () => {
  const children = [...Array.from({ length: 40 }, (_, at) => linked(10 + at)), linked(99, 'failed')]
  const { nodes } = graphOf({ ...JOB, children })!
  assert.equal(nodes.length, 8)
  assert.ok(nodes.some(({ job }) => job?.id === 99))
  assert.equal(nodes.at(-1)?.count, 35)
})
