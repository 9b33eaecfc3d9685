/**
 * What a tool of an agent is. A tool that is not on the list of a run does not exist for it; what a model writes as
 * arguments is data, and is checked (guard/actions.ts) before the tool sees it.
 *
 * After a crash, a call that was begun and has not ended:
 * - `none`: it changes nothing, and is made again
 * - `keyed`: it is made again under the same key, by which what was done is found and not done twice
 * - `once`: nobody can tell whether it was done: it is not made again, and the model is told so
 */
import type { ModelTool } from '../../../cloud/models/conversation.ts'
import type { Effects } from '../../../ledger/contract.ts'
import type { ContextPassage } from '../contract.ts'
import type { Action } from '../guard/actions.ts'

export type AgentTool = ModelTool & {
  name: string
  effect: 'none' | 'keyed' | 'once'
  /** A second call in one run is refused. */
  isOncePerRun?: boolean
  timeoutMs: number
  run(action: Action, call: CallContext): Promise<ToolAnswer>
}

export type CallContext = {
  run: number
  /** The same for the same call of the same run, and for no other. */
  key: string
  /** What earlier calls of the run found. */
  context: readonly ContextPassage[]
  signal: AbortSignal
}

export type ToolAnswer = {
  /** Words of our own. */
  text: string
  /** Text of others. */
  quote?: string
  context?: readonly ContextPassage[]
  /** What it changes in this database: committed with the record of its end. */
  effects?: Effects
}

/** The tool will not do this; the run goes on. */
export class ToolRefusal extends Error {
  readonly code: string

  constructor(code: string, message: string) {
    super(message)
    this.name = 'ToolRefusal'
    this.code = code
  }
}

export function defineTool<N extends Action['name']>(
  action: N,
  tool: Omit<AgentTool, 'run' | 'name'> & {
    name?: string
    run: (action: Extract<Action, { name: N }>, call: CallContext) => Promise<ToolAnswer>
  },
): AgentTool {
  return {
    ...tool,
    name: tool.name ?? action,
    run: (checked, call) => tool.run(checked as Extract<Action, { name: N }>, call),
  }
}
