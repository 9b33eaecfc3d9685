/** The services of the simulated cloud. One line each; everything else follows from it. */
import { drive } from './drive/service.ts'
import { embeddings } from './embeddings/service.ts'
import { gmail } from './gmail/service.ts'
import { onedrive } from './onedrive/service.ts'

export const simServices = {
  gmail,
  onedrive,
  drive,
  embeddings,
} as const

export type SimServices = typeof simServices
