/** What `mail archive` is told, read strictly: a slip here could cost mail. */

import { UsageError } from '../../../base/errors.ts'
import type { ArchiveAction } from '../clean-up/verdict.ts'

export type ArchiveOptions = {
  account?: string
  olderThan?: string
  query?: string
  action: ArchiveAction
  label?: string
  dryRun?: boolean
  quick?: boolean
  limit?: number
  permanently?: boolean
  yes?: boolean
  /** True: whichever is unfinished. */
  resume?: string | true
  abandon?: string
}

/** Throws before anything is opened. `isAsked`: somebody is there to type a confirmation. */
export function checkArchiveOptions(options: ArchiveOptions, isAsked: boolean): void {
  const { action, permanently } = options
  if (options.resume !== undefined || options.abandon !== undefined) {
    checkExisting(options)
    return
  }
  if (options.olderThan === undefined) {
    throw new UsageError('How old must a message be to be taken out of Gmail?', {
      hint: 'Say it with --older-than, such as --older-than 2y. Look first with --dry-run.',
    })
  }
  if (options.quick && !options.dryRun) throw new UsageError('--quick belongs to --dry-run.')
  if (options.label !== undefined && action !== 'unlabel') {
    throw new UsageError(`--label belongs to --action unlabel, not to ${action}.`)
  }
  if (permanently && action !== 'delete') {
    throw new UsageError(`--permanently belongs to --action delete, not to ${action}.`)
  }
  if (action !== 'delete' || options.dryRun) return
  if (!permanently) {
    throw new UsageError('--action delete deletes for good: say so with --permanently.', {
      code: 'confirmation-needed',
      hint: 'Look first with --dry-run. --action trash can be taken back for 30 days.',
    })
  }
  if (!options.yes && !isAsked) {
    throw new UsageError('Deleting for good must be confirmed, and nobody is there to type it.', {
      code: 'confirmation-needed',
      hint: 'Run it in a terminal, or add --yes.',
    })
  }
}

function checkExisting(options: ArchiveOptions): void {
  const others: readonly (keyof ArchiveOptions)[] = [
    'olderThan',
    'query',
    'label',
    'dryRun',
    'limit',
    'quick',
  ]
  const flag = options.resume === undefined ? '--abandon' : '--resume'
  if (options.resume !== undefined && options.abandon !== undefined) {
    throw new UsageError('A run is resumed or abandoned, not both.')
  }
  if (others.some((name) => options[name] !== undefined)) {
    throw new UsageError(`${flag} is about a run that was described when it was started: leave out the rest.`)
  }
}

export function parseRun(text: string): number {
  if (/^#?\d{1,15}$/.test(text) && Number(text.replace('#', '')) >= 1) return Number(text.replace('#', ''))
  throw new UsageError(`"${text}" is not the number of an archive run.`, {
    hint: 'Give it as tidemark mail archive-runs shows it, such as 3.',
  })
}
