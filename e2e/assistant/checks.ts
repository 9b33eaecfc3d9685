/** What must be true of a mailbox when its history is over, and of what was sent, asked of models and of Gmail meanwhile. */

import { callKey } from '../../src/apps/assistant/agent/run.ts'
import type { AssistWorld } from '../../src/apps/assistant/assist-world.suite.ts'
import { isSeen } from '../../src/apps/assistant/plan.ts'
import { DRAFT_KEY_HEADER, messageIdOf } from '../../src/apps/assistant/reply.ts'
import type { ThreadRecord } from '../../src/apps/assistant/store/records.ts'
import type { MailboxUser } from './mailbox-user.ts'

/** Whoever is no user. */
const OTHERS = /^From: .*(?:bob@example\.net|eve@shop\.example)/m
/** Whom agents may send to. */
export const DESK = 'desk@owner.example'

export type Found = { wrong: string[]; drafts: number; agentRuns: number; agentSent: number }

export async function checkMailbox(
  world: AssistWorld,
  user: MailboxUser,
  { deaths }: { deaths: number },
): Promise<Found> {
  const { address } = user
  const wrong: string[] = []
  let drafts = 0
  for (const thread of new Set(user.threads)) {
    const found = await checkThread(world, user, thread)
    wrong.push(...found.wrong)
    drafts += found.ours
  }
  for (const [id, { thread, text }] of user.edited) {
    const draft = user.drafts(thread).find((one) => one.id === id)
    if (!draft) wrong.push(`the draft ${id} of ${thread}, edited to “${text}”, is lost`)
    else if (!draft.text.includes(text)) wrong.push(`the draft ${id} of ${thread} no longer says “${text}”`)
  }
  const strangers = await world.tables.list({ accounts: [address], limit: 500 })
  for (const { thread } of strangers) {
    if (!user.threads.includes(thread)) wrong.push(`${thread} is another mailbox's`)
  }
  const sent = await wronglySent(world, user)
  wrong.push(...sent.wrong, ...(await wronglyAsked(world, user, deaths)))
  const { onTheirWay, inbox, classified, skipped } = await world.tables.balance(address)
  if (onTheirWay > 0) wrong.push(`${onTheirWay} messages are still on their way`)
  if (inbox !== classified + skipped + onTheirWay) wrong.push('the sum of the inbox does not hold')
  return { ...sent, wrong: wrong.map((line) => `${address}: ${line}`), drafts }
}

async function checkThread(
  world: AssistWorld,
  user: MailboxUser,
  thread: string,
): Promise<{ wrong: string[]; ours: number }> {
  const { address } = user
  const wrong: string[] = []
  const found = user.mailbox.thread(thread)
  const record = await user.record(thread)
  const ours = await oursAmong(world, user, thread)
  if (ours > 1 && !user.gotBack.has(thread)) wrong.push(`${thread} has ${ours} drafts of the assistant`)
  const shown = (found?.messages ?? []).filter(({ labelIds }) => isSeen({ labelIds: [...labelIds] }))
  const isInbox = shown.some(
    (message) => message.labelIds.has('INBOX') && OTHERS.test(message.raw().toString('utf8')),
  )
  if (isInbox && (record?.category ?? null) === null) wrong.push(`${thread} is in the inbox and not sorted`)
  if (shown.length > 0 && record) {
    const labels = await world.labelsOn(thread, address)
    const wanted = record.label === null ? [] : [record.label]
    if (labels.join() !== wanted.join() || !record.isApplied) {
      wrong.push(`${thread} has the labels [${labels}], its record (${record.status}) says [${wanted}]`)
    }
  }
  const firsts = (await world.eventsOf(thread, address)).filter((what) => what === 'classified').length
  if (firsts > 1) wrong.push(`${thread} was sorted for the first time ${firsts} times`)
  wrong.push(...unfinished(record, { isThere: found !== undefined, ours }).map((text) => `${thread} ${text}`))
  if (wrong.length > 0) wrong.push(...(await toldOf(world, user, thread)))
  return { wrong, ours }
}

/** What the assistant did with it, and how it ended: for whoever reads of a failure. */
async function toldOf(world: AssistWorld, { address }: MailboxUser, thread: string): Promise<string[]> {
  const jobs = (await world.jobs()).filter(({ key }) => key === `${address}/${thread}`)
  const drafts = await world.tables.drafts(address, thread)
  const { version, order, ...record } = (await world.record(thread, address)) ?? {}
  return [
    `events of ${thread}: ${await world.eventsOf(thread, address)}`,
    `jobs: ${jobs
      .reverse()
      .map(({ id, kind, note, attempt }) => `#${id} ${kind} (${attempt}): ${note}`)
      .join('; ')}`,
    `drafts: ${drafts.map(({ state, draftId, key }) => `${key.slice(0, 6)} ${state} ${draftId}`).join('; ')}`,
    `record: ${JSON.stringify(record)}`,
  ]
}

function unfinished(
  record: ThreadRecord | undefined,
  { isThere, ours }: { isThere: boolean; ours: number },
): string[] {
  if (!record) return []
  const wrong: string[] = []
  const isWaiting = record.category === 'needs_response' && record.status === 'pending'
  if (isWaiting) wrong.push(`still waits for its draft: ${record.problem ?? 'no problem told'}`)
  if (record.status === 'agent') wrong.push('is still with an agent')
  if (record.status === 'drafted' && isThere && ours === 0) wrong.push('is drafted and has no draft')
  return wrong
}

/** By their header, or, where the user has edited them, by their id. */
async function oursAmong(world: AssistWorld, user: MailboxUser, thread: string): Promise<number> {
  const rows = await world.tables.drafts(user.address, thread)
  const known = new Set(rows.map(({ draftId }) => draftId))
  return user
    .drafts(thread)
    .filter(({ id, raw }) => known.has(id) || user.ours.has(id) || raw.includes(DRAFT_KEY_HEADER)).length
}

async function wronglySent(world: AssistWorld, user: MailboxUser): Promise<Omit<Found, 'drafts'>> {
  const { address, mailbox } = user
  const wrong: string[] = []
  const { messages } = mailbox.list({ labelIds: ['SENT'], maxResults: 500 })
  const all = messages.map(({ id }) => mailbox.get(id)!.raw().toString('utf8'))
  const byAgents = all.filter((raw) => /^Auto-Submitted:/m.test(raw))
  const byUser = all.length - byAgents.length
  if (byUser > user.counts.sent) wrong.push(`${byUser} were sent, ${user.counts.sent} of them by the user`)
  if (world.called('messages.send') > 0) wrong.push('a message was sent that was no draft')
  for (const raw of byAgents) {
    const to = /^To: (.*)\r$/m.exec(raw)?.[1]
    if (to !== DESK || /^b?cc:/im.test(raw)) wrong.push(`an agent sent mail to ${to}`)
  }
  const ids = byAgents.map((raw) => /^Message-ID: (.*)\r$/m.exec(raw)?.[1])
  if (new Set(ids).size < ids.length) wrong.push('an agent sent the same mail twice')
  const runs = await world.worker.runs.runs({ accounts: [address] })
  let said = 0
  const sentFor = new Map<string, number>()
  for (const run of runs) {
    const steps = await world.worker.runs.steps(run.id)
    for (const { number, tool, outcome } of steps) {
      const id = messageIdOf(callKey(run.key, number), { name: '', address })
      if (ids.includes(`<${id}>`)) sentFor.set(run.message, (sentFor.get(run.message) ?? 0) + 1)
      if (run.status !== 'running' && tool === 'send' && outcome === 'done') said += 1
    }
  }
  for (const [message, n] of sentFor) if (n > 1) wrong.push(`${n} mails were sent because of ${message}`)
  if ([...sentFor.values()].reduce((sum, n) => sum + n, 0) < byAgents.length)
    wrong.push('mail was sent that no call of an agent wanted')
  if (said > byAgents.length) wrong.push(`${said} calls say that they sent, ${byAgents.length} did`)
  return { wrong, agentRuns: runs.length, agentSent: byAgents.length }
}

/** A model is asked when something happened, or when a process ended before its answer was written down. */
async function wronglyAsked(world: AssistWorld, user: MailboxUser, deaths: number): Promise<string[]> {
  const wrong: string[] = []
  for (const thread of new Set(user.threads)) {
    const about = { accounts: [user.address], threadId: thread, limit: 500 }
    const all = await world.worker.calls.calls(about)
    const most = 1 + (user.happened.get(thread) ?? 0) + deaths
    for (const purpose of ['classify', 'draft'] as const) {
      const answered = all.filter((one) => one.purpose === purpose && one.outcome === 'ok').length
      if (answered > most) wrong.push(`${thread}: ${answered} × ${purpose}, and ${most} reasons for it`)
    }
  }
  return wrong
}

/** Of all mailboxes together. */
export async function checkService(world: AssistWorld, users: readonly MailboxUser[]): Promise<string[]> {
  const wrong: string[] = []
  for (const { address } of users) {
    const { callsRefused } = world.gmail.quota.usage(address)
    if (callsRefused > 0) wrong.push(`Gmail refused ${callsRefused} calls of ${address} because of the quota`)
  }
  const rows = await world.worker.calls.costs({ days: 3 })
  const recorded = rows.reduce((sum, row) => sum + row.calls, 0)
  const served = world.sim.models.counts.calls
  if (served > recorded) wrong.push(`${served} calls of a model, ${recorded} on record`)
  const failed = (await world.jobs()).filter(({ state }) => state === 'failed')
  for (const { kind, key, error } of failed) wrong.push(`${kind} ${key} failed: ${error}`)
  return wrong
}

/** What is settled stays so. */
export async function checkRest(world: AssistWorld, users: readonly MailboxUser[]): Promise<string[]> {
  const others = async (): Promise<number> =>
    (await world.jobs()).filter(({ kind }) => kind !== 'assist.sync').length
  const histories = (): string => users.map(({ mailbox }) => mailbox.historyId).join()
  const [before, history] = [await others(), histories()]
  const asked = world.sim.models.counts.calls
  for (const { address } of users) {
    await world.sync(address)
    await world.sync(address, { full: true })
  }
  const [news, calls] = [(await others()) - before, world.sim.models.counts.calls - asked]
  if (news === 0 && calls === 0 && histories() === history) return []
  const jobs = (await world.jobs()).filter(({ kind }) => kind !== 'assist.sync').slice(0, Math.max(news, 1))
  const kinds = jobs.map(({ kind, key, note }) => `${kind} ${key}: ${note}`)
  const told: string[] = []
  for (const user of users) {
    const threads = user.threads.filter((one) => jobs.some(({ key }) => key === `${user.address}/${one}`))
    for (const thread of threads) told.push(...(await toldOf(world, user, thread)))
  }
  return [
    `it does not come to rest: ${news} new jobs, ${calls} calls of a model: ${kinds.join('; ')}`,
    ...told,
  ]
}
