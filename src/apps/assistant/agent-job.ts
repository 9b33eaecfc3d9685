/** A conversation that a routing rule gives to an agent. */
import type { Outcome } from '../../engine/index.ts'
import { Conversation, type ThreadJob } from './conversation.ts'
import type { AssistKinds } from './jobs.ts'

/** What agents need of this process: see open.ts. */
export type AgentParts = {
  run(talk: Conversation): Promise<Outcome>
}

export async function runAgentJob(kinds: AssistKinds, job: ThreadJob): Promise<Outcome> {
  const talk = await Conversation.open(kinds, job)
  if (!talk) return { skip: 'nothing is known of the conversation', code: 'unknown' }
  if (talk.record.status !== 'agent') return { note: 'no agent is wanted any more', code: 'not-wanted' }
  if (!(await talk.read())) return talk.gone()
  return kinds.agents.run(talk)
}
