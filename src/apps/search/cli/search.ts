/** `tidemark search`: everything that is kept, in one search. What it does is in run.ts. */
import { Option } from 'commander'
import type { AppNoun } from '../../../app/cli/noun.ts'
import { idOption } from '../../../cli/output/input.ts'

const HELP = `
Finds mail, files and documents, by words and by meaning. Words are found whole, "phrases" as they stand, -word leaves
out; operators: source: type: owner: from: to: in: before: after: and more (docs/search.md).

With --json: hits [{id, source, ref, title, type, owner, folders, url, modifiedAtMs, snippet, citation, alsoIn, why}],
total, facets, next, understood, by, fellBack, didYouMean, answered, seenAs. With --coverage: sources
[{source, documents, byWords, byMeaning, unread}], model. With --embed: model, contents, embedded. It is for homes without a server, which embeds by
itself; it can be stopped at any time and goes on where it was. Ends with 0 when all is embedded, 1 when it was stopped
or failed, 3 when the model refused something.

The command line searches as the owner; --as USER sees with the eyes of another user, and that is written down.`

export const searchNoun: AppNoun = {
  description: 'find mail, files and documents, by words and by meaning',
  whole: (command, context) => {
    command
      .argument('[query...]', 'what to find')
      .option('--as <user>', 'with the eyes of this user')
      .addOption(
        repeated('--source <name>', 'only of this: mail, files, drive, ingest; can be given several times'),
      )
      .addOption(
        repeated('--type <type>', 'only of this type: pdf, sheet, mail, …; can be given several times'),
      )
      .addOption(new Option('--sort <order>', 'what comes first').choices(['relevance', 'newest', 'oldest']))
      .addOption(
        new Option('--by <way>', 'by words alone, or by meaning alone').choices(['words', 'meaning']),
      )
      .addOption(idOption('--limit <number>', 'how many to show'))
      .option('--cursor <text>', 'go on behind an earlier page')
      .option('--why', 'say of each why it was found')
      .option('--coverage', 'say how much of each source can be found, and how')
      .option('--embed', 'give meaning to all that is found by words only, and end then')
      .addHelpText('after', HELP)
      .action(async (words: string[], flags: SearchFlags) => {
        const { runSearch } = await import('./run.ts')
        await runSearch(context, words.join(' '), flags)
      })
  },
}

export type SearchFlags = {
  as?: string
  source?: string[]
  type?: string[]
  sort?: 'relevance' | 'newest' | 'oldest'
  by?: 'words' | 'meaning'
  limit?: number
  cursor?: string
  why?: boolean
  coverage?: boolean
  embed?: boolean
}

function repeated(flags: string, text: string): Option {
  return new Option(flags, text).argParser((value: string, earlier: string[] = []) => [...earlier, value])
}
