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
  note: z.string().nullable().describe('What must be right before somebody can sign in'),
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
