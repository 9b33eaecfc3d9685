/** What the archive makes of a Gmail account: what of its mail is wanted, and where its archive is. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import type { AccountUse } from '../../app/accounts/account-use.ts'
import { UsageError } from '../../base/errors.ts'
import { choicesOf, folderName, type MailChoices, mailChoices } from './account.ts'

export const mailAccountUse: AccountUse = {
  choices: {
    schema: z.strictObject({
      spam: z.boolean().optional().describe('Whether spam is kept too'),
      trash: z.boolean().optional().describe('Whether the trash is kept too'),
    }),
    read: (settings) => choicesOf({ settings }),
    write: (settings, chosen) => ({
      ...withoutOld(settings),
      mail: { ...choicesOf({ settings }), ...chosen },
    }),
    ofFlags,
  },

  keeps: async (account) => choicesText(choicesOf(account)),

  async remains({ name }, { home }) {
    const archive = join(home, 'mail', folderName(name))
    return {
      question: 'Its archive stays where it is.',
      text: existsSync(archive)
        ? `What was archived of it stays in ${archive}.`
        : 'Nothing was archived of it.',
      details: { archive },
    }
  },

  limitOf: (level) => (level === 'readonly' ? '`mail clean` can free no space with that' : ''),
}

/** Before other apps could work on an account, the choices stood in its settings themselves. */
function withoutOld(settings: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(settings).filter(([key]) => !(key in mailChoices.shape)))
}

type Flags = { spam?: boolean; trash?: boolean; onlyLabel?: string[]; skipLabel?: string[] }

function ofFlags({ spam, trash, onlyLabel, skipLabel }: Flags): Partial<MailChoices> {
  const both = onlyLabel?.find((label) => skipLabel?.includes(label))
  if (both !== undefined) throw new UsageError(`The label ${both} is both to be archived and to be skipped.`)
  if ([...(onlyLabel ?? []), ...(skipLabel ?? [])].some((label) => label.trim() === '')) {
    throw new UsageError('A label has no name.')
  }
  return {
    ...(spam !== undefined && { spam }),
    ...(trash !== undefined && { trash }),
    ...(onlyLabel && { onlyLabels: onlyLabel }),
    ...(skipLabel && { skipLabels: skipLabel }),
  }
}

function choicesText({ spam, trash, onlyLabels, skipLabels }: MailChoices): string {
  return [
    onlyLabels.length > 0 ? `only ${onlyLabels.join(', ')}` : 'all',
    spam ? 'with spam' : 'without spam',
    ...(trash ? [] : ['without trash']),
    ...(skipLabels.length > 0 ? [`without ${skipLabels.join(', ')}`] : []),
  ].join(', ')
}
