/** `tidemark mail search QUERY`: find mail in the archives, in Gmail's search language. */
import type { Command } from 'commander'
import type { CliContext } from '../../../app/command.ts'
import { idOption } from '../../../cli/output/input.ts'
import { MESSAGE_JSON } from './message.ts'

export type SearchFlags = {
  account?: string
  rank?: boolean
  limit?: number
  cursor?: string
  count?: boolean
}

export const QUERY_HELP = `
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

const HELP = `${QUERY_HELP}

Newest first, or the best first with --rank; over several accounts, --rank takes turns between them.
With --json: understood [{account, query}], the query with every joint, time and name written out; hits, each with ${MESSAGE_JSON}
Also excerpt [{text, match}]; next (for --cursor) or null; unsearched [{account, shard, reason}].
Ends with 0, or with 1 where a part of an archive could not be searched.`

export function registerMailSearch(mail: Command, context: CliContext): void {
  mail
    .command('search')
    .description("find mail in the archives, in Gmail's search language")
    .argument('<query...>', 'what to find; best in quotes')
    .option('--account <address>', 'only in the archive of this account')
    .option('--rank', 'the best first, by how well the words fit')
    .addOption(idOption('--limit <number>', 'how many to show').default(20))
    .option('--cursor <text>', 'the next page: from the one before')
    .option('--count', 'only say how many there are and how large they are')
    .addHelpText('after', HELP)
    .action(async (words: string[], flags: SearchFlags) => {
      const { searchMail } = await import('./search-run.ts')
      await searchMail(context, words.join(' '), flags)
    })
}
