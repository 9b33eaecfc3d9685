/**
 * `tidemark assist`: mail that is sorted, drafts that are written, agents that act. What can be said on the command line
 * is declared here, with its help; what a verb does is in the file that its action imports.
 */
import { Option } from 'commander'
import type { AppNoun, RegisterVerb } from '../../../app/cli/noun.ts'
import { limitOption } from '../../../cli/output/input.ts'
import { CATEGORIES } from '../contract.ts'

const SYNC_HELP = `
Looks at what came into the inbox since the last time, sorts it by labels, and writes drafts for what needs an answer.
With --full it looks through the inbox of the last days, too. Where a model that costs money would have to read more
than assist.backlog_max mails that were found at once, they wait until you agree with --yes; new mail is sorted
meanwhile.
With --watch it goes on; so does tidemark serve.

Ends with 0 when all is settled, 1 when something failed or it was stopped before that, 3 when all is settled but
something needs you.`

const ACCOUNT = ['--account <address>', 'which mailbox; the only one otherwise'] as const

export const assistNoun: AppNoun = {
  description:
    'sort mail by labels, draft answers, and run agents; sends nothing but what an agent may send to whom you named',
  words: {
    one: 'account',
    account: 'mail',
    none: {
      text: 'The assistant is switched on for no mailbox.',
      hint: 'Switch it on with: tidemark assist onboard ADDRESS',
    },
    item: 'message',
    hasBadItems: false,
    choice: '--account <address>',
    choiceText: 'which one; all of them otherwise',
  },
  sync: {
    description: 'sort new mail and write drafts',
    help: SYNC_HELP,
    options: [
      new Option('--full', 'look through the whole inbox of the last days'),
      new Option('--yes', 'agree to what sorting the mail that a scan finds costs'),
    ],
    part: async () => (await import('./sync.ts')).assistSync,
  },
  status: {
    description: 'show how far each mailbox is sorted, and what waits for you',
    report: async () => (await import('./status.ts')).reportAssist,
  },
  verbs: [
    (assist, context) => {
      for (const add of [addSetup, addThreads, addChanges, addRules, addInsight]) add(assist, context)
    },
  ],
}

const ONBOARD_HELP = `
The account must be connected with the permission to read and move: tidemark account add gmail --modify. Labels that
are there already are taken; doing it again changes nothing.`

const addSetup: RegisterVerb = (assist, context) => {
  assist
    .command('onboard')
    .description('switch the assistant on for a mailbox: makes its labels, and begins with new mail')
    .argument('<address>', 'of a connected Gmail account')
    .addHelpText('after', ONBOARD_HELP)
    .action(async (address: string) => (await import('./setup.ts')).onboard(context, address))
  assist
    .command('off')
    .description('switch it off for a mailbox; labels, drafts and records stay')
    .argument('<address>', 'of the mailbox')
    .action(async (address: string) => (await import('./setup.ts')).switchOff(context, address))
  assist
    .command('run')
    .description('sort and draft until it is stopped: sync --watch')
    .option('--yes', 'agree to what sorting the mail that a scan finds costs')
    .option(...ACCOUNT)
    .action(async (options) => (await import('./sync.ts')).runAssist(context, options))
  assist
    .command('import')
    .description('take over styles, contacts, blacklist and routing from a TOML file')
    .argument('<file>', 'the file, or - for standard input')
    .option(...ACCOUNT)
    .action(async (file: string, options) =>
      (await import('./setup.ts')).importSettings(context, file, options),
    )
  assist
    .command('export')
    .description('print styles, contacts, blacklist and routing as TOML')
    .option(...ACCOUNT)
    .action(async (options) => (await import('./setup.ts')).exportSettings(context, options))
}

const addThreads: RegisterVerb = (assist, context) => {
  assist
    .command('list')
    .description('list threads by category, newest first')
    .addOption(new Option('--category <category>', 'only those').choices([...CATEGORIES]))
    .option('--drafts', 'only those whose draft waits for you')
    .option(...ACCOUNT)
    .addOption(limitOption())
    .action(async (options) => (await import('./threads.ts')).listThreads(context, options))
  assist
    .command('show')
    .description('show one thread: why it was sorted so, its draft, and what happened')
    .argument('<thread>', 'its id, as the list has it')
    .option('--mail', 'with the mail that is answered, read from Gmail now')
    .option(...ACCOUNT)
    .action(async (thread: string, options) =>
      (await import('./threads.ts')).showThread(context, thread, options),
    )
  assist
    .command('events')
    .description('list what was done, newest first')
    .argument('[thread]', 'only of this one')
    .option(...ACCOUNT)
    .addOption(limitOption())
    .action(async (thread: string | undefined, options) =>
      (await import('./threads.ts')).listEvents(context, thread, options),
    )
}

const addChanges: RegisterVerb = (assist, context) => {
  assist
    .command('classify')
    .description('sort a thread now, though it was sorted before')
    .argument('<thread>', 'its id')
    .option(...ACCOUNT)
    .action(async (thread: string, options) =>
      (await import('./changes.ts')).classify(context, thread, options),
    )
  assist
    .command('reclassify')
    .description('move a thread to another category, and learn from it')
    .argument('<thread>', 'its id')
    .argument('<category>', CATEGORIES.join(', '))
    .option(...ACCOUNT)
    .action(async (thread: string, category: string, options) =>
      (await import('./changes.ts')).reclassify(context, { thread, category, options }),
    )
  assist
    .command('draft')
    .description('write a draft for a thread now')
    .argument('<thread>', 'its id')
    .option('--instruction <text>', 'what it should say')
    .option(...ACCOUNT)
    .action(async (thread: string, options) => (await import('./changes.ts')).draft(context, thread, options))
  assist
    .command('rework')
    .description('write a draft anew')
    .argument('<thread>', 'its id')
    .argument('<instruction>', 'what should be different')
    .option(...ACCOUNT)
    .action(async (thread: string, instruction: string, options) =>
      (await import('./changes.ts')).rework(context, { thread, instruction, options }),
    )
  assist
    .command('undo')
    .description('take back what an event did: the label and the category as they were')
    .argument('<event>', 'its number, as events has it')
    .option(...ACCOUNT)
    .action(async (event: string, options) => (await import('./changes.ts')).undo(context, event, options))
}

const addRules: RegisterVerb = (assist, context) => {
  const rules = assist.command('rules').description('rules of your own, and those that corrections made')
  rules
    .command('list')
    .description('list them')
    .option(...ACCOUNT)
    .action(async (options) => (await import('./rules.ts')).listRules(context, options))
  rules
    .command('add')
    .description('add one, switched off until it is tried')
    .argument('<category>', CATEGORIES.join(', '))
    .option('--from <glob>', 'the sender, such as *@example.com')
    .option('--subject <text>', 'what the subject contains')
    .option('--on', 'switch it on at once')
    .option(...ACCOUNT)
    .action(async (category: string, options) =>
      (await import('./rules.ts')).addRule(context, category, options),
    )
  for (const [name, about] of [
    ['try', 'say what it would change of past mail; changes nothing'],
    ['on', 'switch it on'],
    ['off', 'switch it off'],
    ['remove', 'forget it'],
  ] as const) {
    rules
      .command(name)
      .description(about)
      .argument('<rule>', 'its number')
      .option(...ACCOUNT)
      .action(async (rule: string, options) =>
        (await import('./rules.ts')).changeRule(context, { verb: name, rule, options }),
      )
  }
  rules
    .command('change')
    .description('change what one is about, or where it leads')
    .argument('<rule>', 'its number')
    .option('--from <glob>', 'the sender; empty for anybody')
    .option('--subject <text>', 'what the subject contains; empty for any')
    .option('--category <category>', CATEGORIES.join(', '))
    .option(...ACCOUNT)
    .action(async (rule: string, options) => (await import('./rules.ts')).editRule(context, rule, options))
  const examples = assist.command('examples').description('mail that you moved, from which is learned')
  examples
    .command('list')
    .description('list it, the newest first')
    .option(...ACCOUNT)
    .action(async (options) => (await import('./rules.ts')).listExamples(context, options))
  for (const [name, about] of [
    ['on', 'learn from one again'],
    ['off', 'do not learn from one'],
    ['remove', 'forget one'],
  ] as const) {
    examples
      .command(name)
      .description(about)
      .argument('<example>', 'its number')
      .option(...ACCOUNT)
      .action(async (example: string, options) =>
        (await import('./rules.ts')).changeExample(context, { verb: name, example, options }),
      )
  }
  assist
    .command('route-test')
    .description('say which agent a mail would go to, and why')
    .requiredOption('--from <address>', 'who sends it')
    .option('--subject <text>', 'its subject', '')
    .option('--header <name: value...>', 'further headers')
    .option(...ACCOUNT)
    .action(async (options) => (await import('./rules.ts')).routeTest(context, options))
}

const addInsight: RegisterVerb = (assist, context) => {
  assist
    .command('briefing')
    .description('what came, what waits, what was done')
    .option(...ACCOUNT)
    .action(async (options) => (await import('./insight.ts')).briefing(context, options))
  assist
    .command('costs')
    .description('what models were asked, and what it cost')
    .option('--estimate', 'what sorting all that waits would cost')
    .option(...ACCOUNT)
    .action(async (options) => (await import('./insight.ts')).costs(context, options))
  assist
    .command('runs')
    .description('list runs of agents')
    .argument('[run]', 'its number: shows it step by step')
    .option(...ACCOUNT)
    .action(async (run: string | undefined, options) =>
      (await import('./insight.ts')).runs(context, run, options),
    )
  assist
    .command('eval')
    .description('sort the labelled sample mails, and say how many were right')
    .option(
      '--model',
      'with the configured model, which costs money; without it, the classifier that needs none',
    )
    .action(async (options) => (await import('./insight.ts')).evaluate(context, options))
}
