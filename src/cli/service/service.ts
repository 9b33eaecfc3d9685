/** `tidemark service`: the server as a service of this machine, by systemd or launchd. */
import type { Command } from 'commander'
import type { CliContext } from '../../app/command.ts'

export type ServiceFlags = { system?: boolean; runAs?: string; dryRun?: boolean }

export function registerService(program: Command, context: CliContext): void {
  const service = program
    .command('service')
    .description('the server as a service that starts with this machine (systemd, launchd)')
  verb(service, 'install', 'writes the service and starts it')
    .option('--run-as <user>', 'with --system: the user whose home and mail it is')
    .action(async (flags: ServiceFlags) => {
      const { installService } = await import('./run.ts')
      await installService(context, flags)
    })
  verb(service, 'uninstall', 'stops the service and takes it away; all data stays').action(
    async (flags: ServiceFlags) => {
      const { uninstallService } = await import('./run.ts')
      await uninstallService(context, flags)
    },
  )
  service
    .command('status')
    .description('whether it is installed and runs')
    .option('--system', 'of the whole machine instead of this user')
    .option('--dry-run', 'only print what would be asked')
    .action(async (flags: ServiceFlags) => {
      const { serviceStatus } = await import('./run.ts')
      await serviceStatus(context, flags)
    })
}

function verb(service: Command, name: string, description: string): Command {
  return service
    .command(name)
    .description(description)
    .option('--system', 'for the whole machine instead of this user; needs root')
    .option('--dry-run', 'only print what would be written and run')
}
