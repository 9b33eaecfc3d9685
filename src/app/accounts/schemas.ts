/** What the API says about accounts. Pages import the types. */
import { z } from 'zod'

export const accountSchema = z.object({
  service: z.string(),
  name: z.string(),
  title: z.string().describe('How it is called among those of all services'),
  state: z.enum(['ready', 'sign-in']),
  user: z.string().describe('Whose it is: the name of the user'),
  access: z
    .string()
    .nullable()
    .describe('One of the levels of its service; null where its secret cannot be opened, or allows nothing'),
})

export const serviceSchema = z.object({
  name: z.string(),
  title: z.string(),
  company: z.string().describe('Who decides about its sign-ins'),
  levels: z
    .array(
      z.object({
        level: z.string(),
        may: z.string().describe('What an account of this level may do, in words'),
        choice: z.object({ title: z.string(), hint: z.string() }).describe('The same, where it is chosen'),
      }),
    )
    .describe('How much may be asked for: each includes those before it'),
  level: z.string().describe('The one to begin with'),
  apps: z.array(z.string()).describe('Those that work for its accounts'),
  isSetUp: z.boolean().describe('Whether there is a client to sign in with; an admin sets it up'),
})

const fieldSchema = z.object({ label: z.string(), example: z.string() })

/** The client with which people sign in; without its secret. */
export const clientSchema = z.object({
  id: z.string(),
  hasSecret: z.boolean(),
  setBy: z
    .string()
    .nullable()
    .describe('What of the configuration says so, and wins; null where it was entered here'),
  setAt: z.string().nullable().describe('Since when it is kept here'),
})

export const setupSchema = z.object({
  company: z.string(),
  intro: z.string(),
  fields: z.object({ id: fieldSchema, secret: fieldSchema.nullable() }).describe('What has to be entered'),
  steps: z.array(
    z.object({
      id: z.string().describe('What a check is about'),
      title: z.string(),
      texts: z.array(z.string()),
      links: z.array(z.object({ text: z.string(), url: z.string() })),
      copies: z
        .array(z.object({ label: z.string(), text: z.string() }))
        .describe('What has to be entered there exactly so'),
    }),
  ),
  client: clientSchema.nullable(),
})

export const checksSchema = z.object({
  checks: z.array(
    z.object({
      step: z.string().describe('The id of the step'),
      state: z.enum(['ok', 'failed', 'unknown']).describe('unknown: only a sign-in can tell'),
      text: z.string(),
      hint: z.string().nullable(),
    }),
  ),
})

/** What is told to who has connected an account. */
export const connectedSchema = z.object({
  title: z.string(),
  text: z.string(),
  hint: z.string().nullable().describe('What happens next'),
})

/** Without what the apps say of it, each under its name in `apps`. */
export type AccountView = z.output<typeof accountSchema>
export type ServiceView = z.output<typeof serviceSchema>
export type Connected = z.output<typeof connectedSchema>
export type ClientView = z.output<typeof clientSchema>
export type SetupView = z.output<typeof setupSchema>
export type StepCheckView = z.output<typeof checksSchema>['checks'][number]
