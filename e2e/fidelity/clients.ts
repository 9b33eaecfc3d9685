/** Every client of other people that npm brings, one line each. */
import { awsClients } from './aws.ts'
import { driveClients } from './drive.ts'
import { gmailClients } from './gmail.ts'
import { graphClients } from './graph.ts'
import type { Client } from './harness.ts'
import { modelClients } from './models.ts'

export const clients: readonly Client[] = [
  ...gmailClients,
  ...driveClients,
  ...graphClients,
  ...awsClients,
  ...modelClients,
]
