/** What of Pub/Sub's answers is used. */
import { z } from 'zod'

export const pullSchema = z.object({
  receivedMessages: z
    .array(
      z.object({
        ackId: z.string().min(1),
        /** Only where the subscription has a dead-letter topic. */
        deliveryAttempt: z.number().int().optional(),
        message: z.object({
          messageId: z.string().min(1),
          data: z.base64().default(''),
          attributes: z.record(z.string(), z.string()).default({}),
          publishTime: z.string().optional(),
        }),
      }),
    )
    .default([]),
})

export type ReceivedMessage = z.output<typeof pullSchema>['receivedMessages'][number]

export const subscriptionSchema = z.object({ ackDeadlineSeconds: z.number().int().default(10) })

/** Of subscriptions with exactly-once delivery: by ack id, why it was refused. */
export const ackErrorSchema = z.object({
  error: z.object({
    details: z.array(z.object({ metadata: z.record(z.string(), z.string()).default({}) })).default([]),
  }),
})
