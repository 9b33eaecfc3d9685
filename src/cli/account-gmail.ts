/** The key file of a service account. */
import { readFileSync } from 'node:fs'
import { z } from 'zod'
import { UsageError } from '../errors.ts'

const SERVICE_ACCOUNT_BYTES_MAX = 65_536

const serviceAccountFile = z.object({
  type: z.literal('service_account'),
  client_email: z.string().min(1),
  private_key: z.string().min(1),
})

export function readServiceAccount(path: string): { clientEmail: string; privateKey: string } {
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (cause) {
    throw new UsageError(`The service account file ${path} cannot be read: ${(cause as Error).message}`, {
      cause,
    })
  }
  let parsed: z.output<typeof serviceAccountFile> | undefined
  try {
    if (text.length <= SERVICE_ACCOUNT_BYTES_MAX) parsed = serviceAccountFile.parse(JSON.parse(text))
  } catch {
    // Without its cause, which may quote the key.
  }
  if (parsed) return { clientEmail: parsed.client_email, privateKey: parsed.private_key }
  throw new UsageError(`${path} is not the key file of a service account.`, {
    hint: 'In the Google Cloud console, under the service account\'s "Keys", add a key of the type JSON: that file is meant.',
  })
}
