/**
 * Styles, contacts, blacklist, routing and agents of a mailbox as TOML: a file of the user's own becomes what is kept in
 * the database, and what is kept can be written as such a file.
 *
 *   name = "Ann"                      [[styles]]                 [contacts]
 *   default_style = "formal"          name = "formal"            "bob@example.com" = "friendly"
 *   blacklist = ["*@ads.example"]     rules = ["…"]              [domains]
 *   follow_up_days = 3                sign_off = "Best, Ann"     "example.com" = "formal"
 *   briefing = true                   examples = ["…"]           [[routing]]  [[profiles]]
 */
import { z } from 'zod'
import { UsageError } from '../../base/errors.ts'
import { readToml, writeToml } from '../../config/toml-text.ts'
import { type AccountSettings, accountSettings, styleSchema } from './account.ts'
import { agentProfiles } from './agent/profiles.ts'
import { routingRules } from './agent/router.ts'

const BYTES_MAX = 1_000_000

const fileStyle = z.strictObject({
  name: z.string(),
  rules: z.array(z.string()).optional(),
  sign_off: z.string().optional(),
  examples: z.array(z.string()).optional(),
  language: z.string().optional(),
})

const fileSchema = z.strictObject({
  name: z.string().optional(),
  default_style: z.string().optional(),
  blacklist: z.array(z.string()).optional(),
  follow_up_days: z.int().optional(),
  briefing: z.boolean().optional(),
  labels: z.record(z.string(), z.string()).optional(),
  styles: z.array(fileStyle).optional(),
  contacts: z.record(z.string(), z.string()).optional(),
  domains: z.record(z.string(), z.string()).optional(),
  routing: z.array(z.unknown()).optional(),
  profiles: z.array(z.unknown()).optional(),
})

/** Only what the file names changes. Refuses a file as a whole, with the first thing that is wrong in it. */
export function settingsFromToml(text: string): Partial<AccountSettings> {
  if (text.length > BYTES_MAX)
    throw new UsageError('The file is too large for settings.', { code: 'import-invalid' })
  const file = checked(() => fileSchema.parse(readToml(text)))
  const { default_style, follow_up_days, styles, ...rest } = file
  return checked(() => {
    const parts = { styles: z.array(styleSchema), routing: routingRules, profiles: agentProfiles }
    const change = {
      ...rest,
      ...(default_style !== undefined && { defaultStyle: default_style }),
      ...(follow_up_days !== undefined && { followUpDays: follow_up_days }),
      ...(styles && {
        styles: styles.map(({ sign_off, ...style }) => ({
          ...style,
          ...(sign_off && { signOff: sign_off }),
        })),
      }),
    }
    z.object(parts).partial().parse(change)
    const whole = accountSettings.parse(change)
    return Object.fromEntries(
      Object.keys(change).map((key) => [key, whole[key as keyof AccountSettings]]),
    ) as Partial<AccountSettings>
  })
}

export function settingsToToml(settings: AccountSettings): string {
  const { defaultStyle, followUpDays, styles, ...rest } = settings
  return writeToml({
    ...rest,
    ...(defaultStyle !== '' && { default_style: defaultStyle }),
    ...(followUpDays !== undefined && { follow_up_days: followUpDays }),
    styles: styles.map(({ signOff, ...style }) => ({ ...style, sign_off: signOff })),
  })
}

function checked<T>(read: () => T): T {
  try {
    return read()
  } catch (cause) {
    const issue = cause instanceof z.ZodError ? cause.issues[0] : undefined
    const { message, line } = cause as Error & { line?: number }
    const place = line === undefined ? '' : ` (line ${line})`
    const what = issue
      ? `${issue.path.join('.') || 'the file'}: ${issue.message}`
      : `${message.split('\n')[0]}${place}`
    throw new UsageError(`The file cannot be taken over: ${what}`, {
      code: 'import-invalid',
      cause,
    })
  }
}
