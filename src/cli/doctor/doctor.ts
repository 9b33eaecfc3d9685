/** `tidemark doctor`: looks at everything that must be right, and says what to do about what is not. */
import type { Command } from 'commander'
import { type CliContext, exitCodes } from '../../app/command.ts'

const HELP = `
Asks no service; \`tidemark account check\` does. Ends with 0 when there is no problem (warnings are none), and
1 when there is one.

With --json: ok, findings [{check, level (ok, warning or problem), text, hint}].`

export function registerDoctor(program: Command, context: CliContext): void {
  program
    .command('doctor')
    .description('look for what is wrong or will be')
    .addHelpText('after', HELP)
    .action(async () => {
      const { examine } = await import('./checks.ts')
      const findings = await examine(context)
      const count = (level: string): number => findings.filter((one) => one.level === level).length
      const [problems, warnings] = [count('problem'), count('warning')]
      if (problems > 0) context.exitCode = exitCodes.failure
      const { output } = context
      if (output.json) {
        output.value({ ok: problems === 0, findings })
        return
      }
      for (const { level, check, text, hint } of findings) {
        output.line(`${level.padEnd(8)} ${check}: ${text}`)
        if (hint && level !== 'ok') output.line(`${' '.repeat(9)}${hint}`)
      }
      const total = [many(problems, 'problem'), many(warnings, 'warning')].filter((one) => one !== '')
      output.line(total.length === 0 ? 'Everything is fine.' : `${total.join(', ')}.`)
    })
}

function many(n: number, what: string): string {
  return n === 0 ? '' : `${n} ${what}${n === 1 ? '' : 's'}`
}
