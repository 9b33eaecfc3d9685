/** What the API says about users. Pages import the types. */
import { z } from 'zod'

export const userSchema = z.object({
  id: z.number(),
  name: z.string(),
  role: z.enum(['admin', 'member']),
  state: z.enum(['active', 'disabled']),
  createdAtMs: z.number(),
})

export const meSchema = userSchema.pick({ id: true, name: true, role: true })

export const userViewSchema = userSchema.extend({
  accounts: z.array(z.object({ service: z.string(), name: z.string() })),
  tokens: z.number().describe('How many it has'),
})

export const tokenSchema = z.object({
  id: z.number(),
  label: z.string(),
  createdAtMs: z.number(),
  usedDayMs: z.number().nullable().describe('The day on which it was last used'),
})

export const auditSchema = z.object({
  id: z.number(),
  atMs: z.number(),
  userName: z.string().describe('Who did it'),
  action: z.string(),
  subject: z.string().describe('Whom or what it was about'),
})

const phase = z
  .enum(['idle', 'discovering', 'processing', 'stalled', 'failed'])
  .describe('Up to date, being scanned, being worked off, waiting for a worker, or failed')

const progress = {
  phase,
  text: z.string().describe('The same for people'),
  processed: z.number(),
  total: z.number(),
  failed: z.number(),
  lastSyncAtMs: z.number().nullable(),
}

export const syncStatusSchema = z.object({
  ...progress,
  sources: z.array(
    z.object({
      app: z.string(),
      source: z.string(),
      account: z.string(),
      title: z.string().optional(),
      ...progress,
    }),
  ),
})

export const syncBegunSchema = z.object({
  begun: z.boolean().describe('False where all of it is in progress already'),
  text: z.string(),
})

export type Me = z.output<typeof meSchema>
export type UserView = z.output<typeof userViewSchema>
export type AuditView = z.output<typeof auditSchema>
export type SyncStatus = z.output<typeof syncStatusSchema>
