/** The services of the simulated cloud. One line each; everything else follows from it. */
import { drive } from './drive/service.ts'
import { embeddings } from './embeddings/service.ts'
import { gcs } from './gcs/service.ts'
import { gmail } from './gmail/service.ts'
import { models } from './models/service.ts'
import { onedrive } from './onedrive/service.ts'
import { pubsub } from './pubsub/service.ts'
import { s3 } from './s3/service.ts'
import { sqs } from './sqs/service.ts'

export const simServices = {
  gmail,
  onedrive,
  drive,
  embeddings,
  sqs,
  s3,
  pubsub,
  gcs,
  models,
} as const

export type SimServices = typeof simServices
