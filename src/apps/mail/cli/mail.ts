/**
 * `tidemark mail`: the mail archive. What can be said on the command line is declared here, with its help; what a verb
 * does is in the file that its action imports, so that `--help` loads nothing else.
 */
import { type Command, Option } from 'commander'
import type { AppNoun, RegisterVerb } from '../../../app/cli/noun.ts'
import { UsageError } from '../../../base/errors.ts'
import { idOption, limitOption } from '../../../cli/output/input.ts'
import { ARCHIVE_ACTIONS } from '../clean-up/verdict.ts'
import type { StatsBy } from '../store/contract.ts'
import { EXPORT_FORMATS } from '../transfer/formats.ts'

const SYNC_HELP = `
The first run copies all mail, slice by slice from the oldest; later runs fetch what changed. It can be stopped at
any time with Ctrl-C and goes on where it was. With --json, one object a line: a progress object per account and
step, and at the end {"type":"summary", accounts [...]}.

Ends with 0 when all is settled, 1 when something failed or it was stopped before that, 3 when all is settled but for bad messages.`

const STATUS_HELP = `
Ends with 0 when all is settled or a process works on it, 1 when it was not synced yet or stopped before it was done,
when counts do not agree, an account is paused, a file of the archive is missing or damaged, or messages are missing from it, 3 when all
is settled but for bad or lost messages.`

const VERIFY_HELP = `
Reads every message back from the archive and compares it with the hash that was noted when it came, and its texts,
headers, labels and search index with what follows from its bytes; then lists the mailbox slice by slice and compares
which messages it has. Nothing is changed without --repair, which writes texts and index anew from sound bytes, sets
damaged files aside (never deletes them) and fetches again what is missing or damaged.

Ends with 0 when all is well (or mended), 1 when something is damaged or missing, or could not be compared.`

export const mailNoun: AppNoun = {
  description: 'the mail archive',
  words: {
    one: 'account',
    item: 'message',
    badText: 'could not be fetched',
    choice: '--account <address>',
    choiceText: 'only this account',
  },
  sync: {
    description: 'copy new and changed mail into the archive',
    help: SYNC_HELP,
    options: [
      new Option('--slice <length>', 'how long a slice is').choices(['auto', 'day', 'week', 'month']),
      new Option('--since <date>', 'leave out older mail, such as 2020-01-31; decided by the first sync'),
    ],
    part: async () => (await import('./sync.ts')).mailSync,
  },
  status: {
    description: 'show how far the archive of each account is',
    help: STATUS_HELP,
    report: async () => (await import('./status.ts')).reportMail,
  },
  verify: {
    description:
      'check every message against its hash and what follows from it, and the archive against Gmail',
    help: VERIFY_HELP,
    options: [
      shardOption(),
      new Option('--offline', 'leave out the comparison with Gmail'),
      new Option('--repair', 'mend what is found'),
    ],
    part: async () => (await import('./verify.ts')).mailVerify,
  },
  verbs: [
    (mail, context) => {
      addSlices(mail, context)
      addReindex(mail, context)
      addRecover(mail, context)
      addSearch(mail, context)
      addShow(mail, context)
      addStats(mail, context)
      addClean(mail, context)
      addTransfer(mail, context)
    },
  ],
}

const SLICES_HELP = `
The picture: every slice is one character, oldest first.
  #  settled: all of its messages are accounted for      =  listed, its messages are under way
  .  waiting to be listed                                !  settled, with bad messages
  |  complete up to here: everything before it that was there when the mailbox was last checked is settled`

const addSlices: RegisterVerb = (mail, context) => {
  mail
    .command('slices')
    .description('draw the slices of a mailbox, and up to where it is complete')
    .option('--account <address>', 'only this account')
    .option('--list', 'list them with their counts instead')
    .addHelpText('after', SLICES_HELP)
    .action(async (options) => (await import('./slices.ts')).showSlices(context, options))
}

function shardOption(): Option {
  // 2019.db is 2019.
  const collect = (name: string, before: string[] = []) => [...before, name.replace(/\.db$/, '')]
  return new Option('--shard <name>', 'only this file of the archive; may be repeated').argParser(collect)
}

const REINDEX_HELP = `
Needed after an update that finds more in messages than before, or where \`tidemark mail verify\` says so. Nothing is
fetched, and the raw bytes stay as they are. Search and sync work meanwhile. Stop it whenever you like: the next run
goes on where this one was.

Ends with 0 when all is written anew, 1 when it was stopped, or when the bytes of messages cannot be read.`

const addReindex: RegisterVerb = (mail, context) => {
  mail
    .command('reindex')
    .description('make texts and the search index anew from the raw bytes')
    .option('--account <address>', 'only this account')
    .addOption(shardOption())
    .addHelpText('after', REINDEX_HELP)
    .action(async (options) => (await import('./reindex.ts')).reindexMail(context, options))
}

const RECOVER_HELP = `
Where the ledger was lost and the account connected anew, the archive in the account's folder is taken over: the next
sync compares it with Gmail and fetches only what is missing. Where the archive's list of files (archive.json) is lost
or damaged, it is written anew from the files. Where the archive itself is lost for good, --empty begins a new one,
which mail verify --repair fills again with what Gmail still has. No mail is changed or removed.`

const addRecover: RegisterVerb = (mail, context) => {
  mail
    .command('recover')
    .description('take over an archive whose ledger or list of files was lost')
    .option('--account <address>', 'only this account')
    .option('--empty', 'begin with an empty archive where it is lost for good')
    .addHelpText('after', RECOVER_HELP)
    .action(async (options) => (await import('./recover.ts')).recoverMail(context, options))
}

/** What the commands that print messages print of each. */
const MESSAGE_JSON = `account, id, threadId, messageId, date (when Gmail received it), headerDate,
subject, from, to, cc and bcc [{name, address}], labels [names], snippet, bytes, sha256, attachments [{number, name,
type, bytes, sha256}], problems [text], source ("gmail" or "import"), deletedAt, storedAt, shard. Times are UTC.`

const QUERY_HELP = `
The query is written as in Gmail; all of its parts must hold.
  budget  "cost plan"  bud*       a word, words in a row, the beginning of a word; anywhere in a mail
  from:amy to:bob cc: bcc:        words of names and addresses; to: also looks at copies; from:me is the account
  subject:(cost plan) body:       words in the subject, in the text
  filename:pdf has:attachment     words of the names of attachments; mail with any
  label:work in:inbox             labels; in: takes inbox, sent, drafts, trash, spam, archive, anywhere
  is:unread is:starred            also read, important, deleted (no longer in Gmail), imported; category:social
  larger:10M smaller:500K         sizes; K, M and G are powers of 1024
  after:2024/01/31 before:        days begin at midnight in Los Angeles, as in Gmail; or 2024-01-31T12:00:00Z, or
                                  seconds since 1970
  newer_than:3d older_than:1y     days, months (m), years
  rfc822msgid: id: thread:        a Message-ID, Gmail's id of a message or a conversation
  -word  NOT word  a OR b         not; not; either. OR binds closer than AND and than what stands side by side
  {a b}  (a b)  +word             any of; all of; exactly this word, as every word is found here
What looks like an operator and is none here (|, &&, !word, AROUND, a misspelled operator) is refused; in quotes it is
text like any other.
Unlike in Gmail, spam and trash are searched too, unless you leave them out: -in:spam -in:trash. A query that begins
with a minus goes behind --: tidemark mail search -- -in:inbox

Words are runs of letters and digits, whatever their case and accents (muller finds Müller), and are found whole:
plan does not find plans, plan* does. Languages that leave no blanks between words (Chinese, Japanese, Thai) are found
by a whole run of characters or by its beginning (東京*), not by what is in the middle of one. ß is not ss.`

const SEARCH_HELP = `${QUERY_HELP}

Newest first, or the best first with --rank; over several accounts, --rank takes turns between them.
With --json: understood [{account, query}], the query with every joint, time and name written out; hits, each with ${MESSAGE_JSON}
Also excerpt [{text, match}]; next (for --cursor) or null; unsearched [{account, shard, reason}].
Ends with 0, or with 1 where a part of an archive could not be searched.`

const addSearch: RegisterVerb = (mail, context) => {
  mail
    .command('search')
    .description("find mail in the archives, in Gmail's search language")
    .argument('<query...>', 'what to find; best in quotes')
    .option('--account <address>', 'only in the archive of this account')
    .option('--rank', 'the best first, by how well the words fit')
    .addOption(idOption('--limit <number>', 'how many to show').default(20))
    .option('--cursor <text>', 'the next page: from the one before')
    .option('--count', 'only say how many there are and how large they are')
    .addHelpText('after', SEARCH_HELP)
    .action(async (words: string[], flags) =>
      (await import('./search.ts')).searchMail(context, words.join(' '), flags),
    )
}

const SHOW_HELP = `
ID is Gmail's id of a message, as \`tidemark mail search\` shows it, or a Message-ID with its @.
What came from others is shown escaped on a terminal. --raw and --html give it exactly as it is, to a file or another
program; to a terminal only with --force, since mail can hold sequences that a terminal obeys. An attachment is never
written over a file that is there, unless with --force; in a folder it gets its own name, made safe.

With --json: ${MESSAGE_JSON}
Also text; with --headers, headers [{name, value}] instead; with --html, html; with --raw, raw (base64).`

const addShow: RegisterVerb = (mail, context) => {
  const views = ['raw', 'headers', 'text', 'html', 'attachments', 'saveAttachment']
  const view = (flag: string, description: string): Option => {
    const option = new Option(flag, description)
    return option.conflicts(views.filter((name) => name !== option.attributeName()))
  }
  mail
    .command('show')
    .description('show a message, its headers, its bytes or its attachments')
    .argument('<id>', 'which message')
    .option('--account <address>', 'only in the archive of this account')
    .addOption(view('--raw', 'the bytes of the message, exactly as Gmail has them'))
    .addOption(view('--headers', 'its headers'))
    .addOption(view('--text', 'only its text'))
    .addOption(view('--html', 'its HTML, as it came'))
    .addOption(view('--attachments', 'list its attachments'))
    .addOption(
      idOption('--save-attachment <number>', 'save this attachment, with --to').conflicts(views.slice(0, -1)),
    )
    .option('--to <path>', 'the file or folder for --save-attachment')
    .option('--force', 'write bytes to a terminal, or over a file that is there')
    .addHelpText('after', SHOW_HELP)
    .action(async (id: string, flags) => (await import('./show.ts')).showMail(context, id, flags))
}

const STATS_BY: readonly StatsBy[] = ['year', 'sender', 'label', 'size']

const STATS_HELP = `
Years are those of UTC, sizes those of the mail as it came. A mail with several labels counts for each of them.
With --json: by, rows [{key, messages, bytes}], unsearched [{account, shard, reason}]; the key '' stands for none.
Ends with 0, or with 1 where a part of an archive could not be read.`

const addStats: RegisterVerb = (mail, context) => {
  mail
    .command('stats')
    .description('show what the archives hold, by year, sender, label or size')
    .addOption(new Option('--by <what>', 'how to sort it').choices(STATS_BY).default('year'))
    .option('--account <address>', 'only the archive of this account')
    .addOption(idOption('--limit <number>', 'how many rows to show').default(50))
    .addHelpText('after', STATS_HELP)
    .action(async (flags) => (await import('./stats.ts')).showStats(context, flags))
}

const CLEAN_HELP = `
Takes only messages from where the archive is complete, whose bytes, read back from the archive just now, have their hash, and whose
state in Gmail is as it was when they were planned. Everything else is refused and told by class.

  unlabel   takes a label away, INBOX if none is named: the message stays in All Mail. The default.
  trash     moves to the trash, which Gmail empties after 30 days.
  delete    deletes for good; needs --permanently, and a typed confirmation or --yes.

What was done is journaled before it is done: undo it with tidemark mail clean-undo RUN. Can be stopped at any time with
Ctrl-C; go on with --resume. Ages are written 90d, 26w, 18mo or 2y.

Ends with 0 when done, 1 when something failed or it was stopped, 2 on wrong usage, 3 when done but some messages
were refused because their bytes in the archive are damaged.`

const UNDO_HELP = `
Labels come back as they were before. Messages that Gmail no longer has are inserted again, with their bytes from the
archive, under new ids. Gmail then dates them by their Date header, usually some seconds before they arrived. With
--keep-dates it is the other way round: their Date header is replaced by the time of arrival, and kept as
X-Original-Date, so that their bytes are others. How many are different in that way is said at the end. What others
have deleted meanwhile is not inserted.`

const addClean: RegisterVerb = (mail, context) => {
  // The names that these verbs had before are understood still, and shown nowhere.
  for (const [name, isOld] of [
    ['clean', false],
    ['archive', true],
  ] as const) {
    addCleanFlags(mail.command(name, { hidden: isOld })).action(async (options) =>
      (await import('./clean.ts')).cleanMail(context, options),
    )
  }
  for (const [name, isOld] of [
    ['clean-undo', false],
    ['undo', true],
  ] as const) {
    mail
      .command(name, { hidden: isOld })
      .description('undo a clean-up')
      .argument('<run>', 'its number, as clean-runs shows it')
      .option('--keep-dates', 'insert deleted messages with the date of arrival; this changes their bytes')
      .addHelpText('after', UNDO_HELP)
      .action(async (run: string, options) => (await import('./clean.ts')).undoCleanUp(context, run, options))
  }
  for (const [name, isOld] of [
    ['clean-runs', false],
    ['archive-runs', true],
  ] as const) {
    mail
      .command(name, { hidden: isOld })
      .description('clean-ups, newest first; with a number, one of them')
      .argument('[run]', 'the number of a run')
      .option('--account <address>', 'only of this account')
      .addOption(limitOption())
      .action(async (run: string | undefined, options) =>
        (await import('./clean-report.ts')).listCleanUps(context, run, options),
      )
  }
}

function addCleanFlags(clean: Command): Command {
  return clean
    .description('take mail out of Gmail that is proven to be stored')
    .option('--account <address>', 'the account; may be left out where there is only one')
    .option('--older-than <age>', 'only what arrived longer ago, such as 2y')
    .option('--query <query>', 'only what this search finds')
    .addOption(new Option('--action <action>', 'what to do').choices([...ARCHIVE_ACTIONS]).default('unlabel'))
    .option('--label <name>', 'with unlabel: the label to take away; INBOX if left out')
    .option('--dry-run', 'only say what would be done and what refused')
    .option('--quick', 'with --dry-run: without reading bytes and asking Gmail')
    .addOption(new Option('--limit <number>', 'at most this many messages').argParser(messagesMax))
    .option('--permanently', 'with delete: yes, for good')
    .option('--yes', 'do not ask')
    .option('--resume [run]', 'go on with a run that is not finished')
    .option('--abandon <run>', 'give up a run: what is done stays done')
    .addHelpText('after', CLEAN_HELP)
}

function messagesMax(text: string): number {
  if (/^\d{1,12}$/.test(text) && Number(text) >= 1) return Number(text)
  throw new UsageError(`--limit is "${text}", but it must be a whole number from 1 up.`)
}

const IMPORT_HELP = `
PATH is a file or a folder, such as a Thunderbird profile, Apple Mail's folders (.mbox, .emlx), a Maildir, Takeout's
mailbox files, or .eml files. Files are known by their content, not by their names, also inside .gz; names of folders
become labels. Links are not followed. What is passed over is named with the reason.

Takeout's files name Gmail's ids, conversations and labels, which are kept; the headers that Takeout adds for them are
taken off, as are those that Thunderbird adds for itself; what was deleted there is passed over. Other messages are
known by their Message-ID and bytes; one that lies in several folders is kept once, with the labels of all.

No account is needed: without one, mail goes into an archive called "imported". The archive of an address that is
named by --account becomes that account's when it is connected.

What the archive has is left alone: an import that was stopped is simply started again. Imported mail is searched
like all other, and marked (is:imported): nothing in Gmail is freed on the word of a file.

Ends with 0 when all was read, 3 when some of it was damaged and skipped; each such place is named.`

const EXPORT_HELP = `
  mbox      one file, as Takeout writes it: ids, conversations and labels can be imported again.
  eml       a folder with a folder for each year, a file for each message.
  maildir   a Maildir; read and starred mail has its flags.

Written beside the target under a name that ends in .partial, and renamed when all of it is on disk.
The query is written as for tidemark mail search; without one, all mail is exported.

Ends with 0 when done, 3 when done but some messages could not be read from the archive.`

const addTransfer: RegisterVerb = (mail, context) => {
  mail
    .command('import')
    .description('bring mail from files into the archive')
    .argument('<path>', 'a file with mail, or a folder with any of them')
    .option(
      '--account <address>',
      'the account whose archive takes it; may be left out where there is only one',
    )
    .addOption(
      new Option('--quoting <form>', 'how a mailbox file quotes lines that begin with "From "')
        .choices(['mboxrd', 'mboxo', 'none'])
        .default('mboxrd'),
    )
    .addHelpText('after', IMPORT_HELP)
    .action(async (path: string, flags) => (await import('./transfer.ts')).importMail(context, path, flags))
  mail
    .command('export')
    .description('write mail from the archive into files')
    .option('--account <address>', 'the account; may be left out where there is only one')
    .option('--query <query>', 'only what this search finds')
    .addOption(
      new Option('--format <format>', 'how it is written').choices([...EXPORT_FORMATS]).default('mbox'),
    )
    .requiredOption('--to <path>', 'the file (mbox) or folder (eml, maildir) to write')
    .option('--force', 'replace the file, or add to the folder, that is there')
    .addHelpText('after', EXPORT_HELP)
    .action(async (flags) => (await import('./transfer.ts')).exportMail(context, flags))
}
