/**
 * `tidemark completion SHELL` prints a script for the shell to source. The script asks the hidden
 * `tidemark complete -- WORDS` what may come next.
 */
import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'
import { Argument, type Command } from 'commander'
import type { CliContext } from '../app/command.ts'
import { shellWord } from '../base/wording.ts'
import type { Environment } from '../config/location.ts'

const SHELLS = ['bash', 'zsh', 'fish', 'powershell'] as const

const HELP = `
Examples:
  bash:        source <(tidemark completion bash)
  zsh:         source <(tidemark completion zsh)
  fish:        tidemark completion fish > ~/.config/fish/completions/tidemark.fish
  powershell:  tidemark completion powershell | Out-String | Invoke-Expression`

/**
 * Our own, because the library's needs the bash-completion package and runs what was typed so far
 * through eval. Without a suggestion, bash falls back to file names.
 */
const BASH = `# bash completion for tidemark
_tidemark_complete() {
  local value
  COMPREPLY=()
  while IFS=$'\\t' read -r value _; do
    [[ $value == :* ]] || COMPREPLY+=("$value")
  done < <("\${COMP_WORDS[0]}" complete -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o default -F _tidemark_complete tidemark
`

export function registerCompletion(
  program: Command,
  input: {
    context: CliContext
    /** A program with all other commands, to which the completion library adds its own. */
    describe: () => Command
    /** Where the program is that a shell starts. */
    launcher?: string | undefined
  },
): void {
  program
    .command('completion')
    .description('print a script that completes commands in your shell')
    .addArgument(new Argument('<shell>').choices(SHELLS))
    .addHelpText('after', HELP)
    .action(async (shell: (typeof SHELLS)[number]) => {
      if (shell === 'bash') {
        input.context.output.raw(BASH)
        return
      }
      const completions = await loadCompletions(input.describe())
      const { context, launcher } = input
      const found = launcher === undefined || isOnPath(context.env) ? program.name() : shellWord(launcher)
      completions.setup(program.name(), found, shell)
    })
  program
    .command('complete', { hidden: true })
    .argument('[words...]')
    .action(async (words: string[]) => {
      const completions = await loadCompletions(input.describe())
      completions.parse(words)
    })
}

/** Whether a shell finds the program by its name. */
export function isOnPath(env: Environment): boolean {
  const folders = (env.PATH ?? '').split(delimiter).filter((folder) => folder !== '')
  return folders.some((folder) => {
    try {
      accessSync(join(folder, 'tidemark'), constants.X_OK)
      return true
    } catch {
      return false
    }
  })
}

async function loadCompletions(described: Command) {
  const { default: tab } = await import('@bomb.sh/tab/commander')
  const completions = tab(described, { completionCommandName: 'completion' })
  for (const name of hiddenNames(described)) completions.commands.delete(name)
  // The flags of the program hold for every command, and the library knows only a command's own.
  for (const command of completions.commands.values()) {
    for (const [name, option] of completions.options) {
      if (!command.options.has(name)) command.options.set(name, option)
    }
  }
  return completions
}

/** Commands that help does not list, by their words: `mail undo`. */
function hiddenNames(command: Command, words: readonly string[] = []): string[] {
  const visible = command.createHelp().visibleCommands(command)
  return command.commands.flatMap((inner) => {
    const path = [...words, inner.name()]
    return visible.includes(inner) ? hiddenNames(inner, path) : [path.join(' ')]
  })
}
