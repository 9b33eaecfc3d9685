/** The services of the simulated cloud. One line each; everything else follows from it. */
import { gmail } from './gmail/service.ts'
import { onedrive } from './onedrive/service.ts'

export const simServices = {
  gmail,
  onedrive,
} as const

export type SimServices = typeof simServices
