/** Rules and examples: what the user has said about their mail. Everything here can be seen and changed by them. */
import { z } from 'zod'
import type { Tx } from '../../../ledger/contract.ts'
import type { Category } from '../contract.ts'
import type { Taught } from './records.ts'

/** All that is given must fit. Globs: `*@example.com`, `*.example.com`. */
export const ruleMatch = z
  .strictObject({
    from: z.string().min(1).max(320).optional().describe('The sender, as a glob such as *@example.com'),
    subject: z.string().min(1).max(200).optional().describe('A text that the subject contains'),
  })
  .refine(
    ({ from, subject }) => from !== undefined || subject !== undefined,
    'a rule must say what it is about',
  )
export type RuleMatch = z.output<typeof ruleMatch>

export type Rule = {
  id: number
  account: string
  match: RuleMatch
  category: Category
  note: string
  enabled: boolean
  /** `correction`: it came from a label that the user moved. */
  origin: 'user' | 'correction'
  thread: string | null
  hits: number
  createdAtMs: number
  updatedAtMs: number
}

export type NewRule = Pick<Rule, 'account' | 'match' | 'category' | 'note' | 'enabled' | 'origin' | 'thread'>

export type Example = {
  id: number
  account: string
  thread: string
  text: string
  category: Category
  enabled: boolean
  createdAtMs: number
}

export async function addRule(tx: Tx, rule: NewRule, nowMs: number): Promise<number> {
  const row = await tx.get<{ id: number }>(
    `INSERT INTO assist_rules(account, matches, category, note, enabled, origin, thread, created_at, updated_at)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id`,
    [
      rule.account,
      JSON.stringify(rule.match),
      rule.category,
      rule.note,
      rule.enabled ? 1 : 0,
      rule.origin,
      rule.thread,
      nowMs,
      nowMs,
    ],
  )
  return Number(row!.id)
}

/** False where there is none. */
export async function changeRule(
  tx: Tx,
  { account, id }: Pick<Rule, 'account' | 'id'>,
  change: Pick<Rule, 'match' | 'category' | 'note' | 'enabled'>,
  nowMs: number,
): Promise<boolean> {
  const { match, category, note, enabled } = change
  const changed = await tx.run(
    `UPDATE assist_rules SET matches = ?, category = ?, note = ?, enabled = ?, updated_at = ? WHERE account = ? AND id = ?`,
    [JSON.stringify(match), category, note, enabled ? 1 : 0, nowMs, account, id],
  )
  return changed === 1
}

export async function removeRule(tx: Tx, { account, id }: Pick<Rule, 'account' | 'id'>): Promise<boolean> {
  return (await tx.run(`DELETE FROM assist_rules WHERE account = ? AND id = ?`, [account, id])) === 1
}

export async function noteHit(tx: Tx, id: number): Promise<void> {
  await tx.run(`UPDATE assist_rules SET hits = hits + 1 WHERE id = ?`, [id])
}

/** One for each conversation: the last word counts. */
export async function putExample(
  tx: Tx,
  example: Pick<Example, 'account' | 'thread' | 'text' | 'category'>,
  nowMs: number,
): Promise<void> {
  const { account, thread, text, category } = example
  await tx.run(
    `INSERT INTO assist_examples(account, thread, sample, category, enabled, created_at) VALUES (?, ?, ?, ?, 1, ?)
     ON CONFLICT (account, thread) DO UPDATE SET sample = excluded.sample, category = excluded.category, enabled = 1`,
    [account, thread, text, category, nowMs],
  )
}

export async function setExample(
  tx: Tx,
  { account, id, enabled }: Pick<Example, 'account' | 'id' | 'enabled'>,
): Promise<boolean> {
  const changed = await tx.run(`UPDATE assist_examples SET enabled = ? WHERE account = ? AND id = ?`, [
    enabled ? 1 : 0,
    account,
    id,
  ])
  return changed === 1
}

/**
 * The last word about a conversation is taken back: the one before it counts again, unless that was forgotten by hand,
 * which began the example anew.
 */
export async function unlearn(
  tx: Tx,
  { account, thread }: Pick<Example, 'account' | 'thread'>,
  before: { atMs: number; taught: Taught } | undefined,
): Promise<void> {
  if (before) {
    const { text, category } = before.taught
    const restored = await tx.run(
      `UPDATE assist_examples SET sample = ?, category = ? WHERE account = ? AND thread = ? AND created_at <= ?`,
      [text, category, account, thread, before.atMs],
    )
    if (restored > 0) return
  }
  await tx.run(`DELETE FROM assist_examples WHERE account = ? AND thread = ?`, [account, thread])
}

export async function removeExample(
  tx: Tx,
  { account, id }: Pick<Example, 'account' | 'id'>,
): Promise<boolean> {
  return (await tx.run(`DELETE FROM assist_examples WHERE account = ? AND id = ?`, [account, id])) === 1
}
