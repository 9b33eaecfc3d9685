/** `tidemark assist list`, `show` and `events`: what is known of threads. */
import type { CliContext } from '../../../app/command.ts'
import { distance, isoTime } from '../../../base/moment.ts'
import type { MessageView } from '../api/schemas.ts'
import type { Category } from '../contract.ts'
import { type ThreadMail, threadMail } from '../thread-mail.ts'
import { eventText, eventView, threadDetail, threadView } from '../views.ts'
import { type AccountOption, chosenAccount, chosenThread, withAssist } from './context.ts'

type ListOptions = AccountOption & { category?: Category; drafts?: boolean; limit: number }

export async function listThreads(context: CliContext, options: ListOptions): Promise<void> {
  await withAssist(context, async (opened) => {
    const { assist, ledger } = opened
    const accounts =
      options.account === undefined
        ? (await assist.tables.accounts()).map(({ account }) => account)
        : [await chosenAccount(opened, options)]
    const rows = await assist.tables.list({
      accounts,
      category: options.category,
      status: options.drafts ? 'drafted' : undefined,
      limit: options.limit,
    })
    const nowMs = ledger.now()
    context.output.listing({
      columns: [
        { title: 'thread', value: ({ thread }) => thread },
        { title: 'category', value: ({ category }) => category ?? '' },
        { title: 'status', value: ({ status }) => status },
        { title: 'came', value: ({ lastAtMs }) => distance(lastAtMs, nowMs) },
        { title: 'from', value: ({ sender }) => sender },
        { title: 'subject', value: ({ subject }) => subject },
      ],
      rows,
      json: rows.map(threadView),
      empty: 'No thread is sorted so.',
    })
  })
}

export async function showThread(
  context: CliContext,
  thread: string,
  options: AccountOption & { mail?: boolean },
): Promise<void> {
  await withAssist(context, async (opened) => {
    const { tables } = opened.assist
    const record = await chosenThread(opened, thread, options)
    const events = await tables.events(record.account, { thread })
    const draft = record.draftKey === null ? undefined : await tables.draft(record.account, record.draftKey)
    const view = threadDetail(record, { events, draft })
    const { output } = context
    const mail = options.mail
      ? await threadMail(opened.assist.kinds, record, new AbortController().signal)
      : undefined
    if (output.json) {
      output.value(mail ? { ...view, mail } : view)
      return
    }
    output.line(`${view.subject || '(no subject)'}`)
    output.line(`  from      ${view.sender}`)
    output.line(
      `  category  ${view.category ?? 'not sorted yet'} (${view.by ?? 'nobody'}): ${view.reasoning}`,
    )
    output.line(`  status    ${view.status}${view.problem === null ? '' : `; ${view.problem}`}`)
    output.line(`  gmail     ${view.url}`)
    for (const line of mailLines(mail)) output.line(line)
    if (view.draft) {
      output.line(
        `  draft     ${view.draft.isEdited ? 'edited by you' : 'as it was written'}, reworked ${view.reworks} times`,
      )
      for (const line of view.draft.text.split('\n')) output.line(`    ${line}`)
      for (const { text } of view.draft.removed) output.line(`  removed   ${text}`)
      for (const source of view.draft.sources) output.line(`  leans on  ${source.title}`)
    }
    for (const event of view.events) {
      output.line(
        `  ${isoTime(event.atMs)}  #${event.id} ${event.text}${event.canUndo ? ' (can be undone)' : ''}`,
      )
    }
  })
}

/** Of the mail that is answered, and what came before and after it. */
export function mailLines({ items, older }: ThreadMail = { items: [], older: 0 }): string[] {
  const answered = items.find(({ isAnswered }) => isAnswered)
  const when = (message: MessageView): string => {
    if (message === answered) return 'answers'
    return answered && message.sentAtMs < answered.sentAtMs ? 'earlier' : 'later'
  }
  const lines = items.flatMap((message) => [
    `  ${when(message).padEnd(8)}  ${message.from}, ${isoTime(message.sentAtMs)}`,
    ...textLines(message),
  ])
  return older === 0 ? lines : [...lines, `  earlier   ${older} more, which are not shown here`]
}

function textLines({ text, isCut, hidden }: MessageView): string[] {
  return [
    ...text.split('\n').map((line) => `    ${line}`),
    ...(isCut ? ['    … (there is more of it in Gmail)'] : []),
    ...(hidden === null
      ? []
      : [
          `  hidden    ${hidden.ways.map((way) => way.text).join(', ')}; no model was given it: ${hidden.excerpt}`,
        ]),
  ]
}

export async function listEvents(
  context: CliContext,
  thread: string | undefined,
  options: AccountOption & { limit: number },
): Promise<void> {
  await withAssist(context, async (opened) => {
    const account =
      thread === undefined
        ? await chosenAccount(opened, options)
        : (await chosenThread(opened, thread, options)).account
    const rows = await opened.assist.tables.events(account, {
      limit: options.limit,
      ...(thread === undefined ? {} : { thread }),
    })
    context.output.listing({
      columns: [
        { title: 'event', value: ({ id }) => id, align: 'right' },
        { title: 'at', value: ({ atMs }) => isoTime(atMs) },
        { title: 'thread', value: (row) => row.thread },
        { title: 'by', value: ({ by }) => by },
        { title: 'what', value: eventText },
      ],
      rows,
      json: rows.map((row) => ({ ...eventView(row), thread: row.thread })),
      empty: 'Nothing was done yet.',
    })
  })
}
