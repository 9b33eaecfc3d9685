/** What an app's sources and their items are called in commands: what the app says, and what follows from its name. */
export type SourceWords = {
  /** `account`, `folder`; in JSON, too. */
  one: string
  many: string
  /** Whose account is missing where none is connected: `No mail account is connected.` */
  account: string
  /** Where an account is not enough: that there is no source yet, and how one begins. */
  none?: { text: string; hint: string }
  /** What bad items are: `message`. */
  item: string
  items: string
  /** What became of bad items: `could not be fetched`. */
  badText: string
  /** False where the app isolates nothing, and tells of what it leaves alone in its status. */
  hasBadItems: boolean
  /** How a command is told which one is meant: `[folder]`, an argument, or `--account <address>`, an option. */
  choice: string
  choiceText: string
}

/** An app that says so. */
export type WordedApp = { readonly name: string; readonly noun: { readonly words?: Partial<SourceWords> } }

export function sourceWords({ noun, name }: WordedApp): SourceWords {
  const { one = 'source', item = 'item' } = noun.words ?? {}
  return {
    one,
    many: `${one}s`,
    account: name,
    item,
    items: `${item}s`,
    badText: 'would not work',
    hasBadItems: true,
    choice: `[${one}]`,
    choiceText: `its name; all of them otherwise`,
    ...noun.words,
  }
}

/** ` --account ann@example.com`, ` Documents`: what is to be added to a command about this source. */
export function choiceOf(app: WordedApp, name: string): string {
  const { choice } = sourceWords(app)
  return choice.startsWith('-') ? ` ${choice.replace(/ .*$/, '')} ${name}` : ` ${name}`
}
