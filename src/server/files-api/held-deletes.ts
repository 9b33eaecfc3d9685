/** Many deletions at once wait for a yes: what they are, and saying it, with their number. */
import { z } from 'zod'
import { heldDeletes } from '../../apps/file-sync/store/browse.ts'
import type { DriveRow } from '../../apps/file-sync/store/contract.ts'
import { freeHeld } from '../../apps/file-sync/store/ends.ts'
import { setDrive } from '../../apps/file-sync/store/file-store.ts'
import { formatCount } from '../../format.ts'
import { plural } from '../../wording.ts'
import { doneSchema } from '../engine-api/schemas.ts'
import { conflict } from '../problem.ts'
import { defineRoute } from '../route.ts'
import { looksAt } from '../shared-looks.ts'
import { askForPlan, driveParams, driveRow } from './inputs.ts'
import { heldDeletesSchema } from './schemas.ts'

const EXAMPLES_MAX = 50
const path = '/api/files/drives/{name}/held-deletes'

const showHeld = defineRoute(
  {
    ...{ method: 'get', path, tag: 'files', access: 'read' },
    summary: 'Deletions that wait for a yes, since they are so many at once',
    params: driveParams,
    answer: heldDeletesSchema,
  },
  async ({ params: { name } }, services) => {
    const { local, remote } = heldOf(await driveRow(services, name))
    const items = local + remote === 0 ? [] : await heldDeletes(services.ledger, name, EXAMPLES_MAX)
    return { here: local, there: remote, total: local + remote, items }
  },
)

const allowHeld = defineRoute(
  {
    ...{ method: 'post', path, tag: 'files', access: 'write', status: 202 },
    summary: 'Says yes to them; with their number, so that nobody says yes to more than was seen',
    description: '`already`: none waits. 409: it is another number by now.',
    errors: [409],
    params: driveParams,
    body: z.strictObject({ count: z.int().min(1).describe('The `total` that was shown') }),
    answer: doneSchema,
  },
  async ({ params: { name }, body: { count } }, services) => {
    const { local, remote } = heldOf(await driveRow(services, name))
    const total = local + remote
    if (total === 0) return { outcome: 'already' as const, text: `No deletion of ${name} waits for a yes.` }
    if (total !== count) {
      throw conflict(`${formatCount(total)} deletions wait by now, and not ${formatCount(count)}.`, {
        code: 'deletes-changed',
        hint: 'Look at them again before you say yes.',
      })
    }
    await services.files.store.write(async (tx) => {
      await setDrive(tx, name, { forcedDeletes: count, heldDeletes: null })
      await freeHeld(tx, name)
    })
    await askForPlan(services, name)
    looksAt(services.ledger).forget()
    const what = `${formatCount(count)} ${plural(count, 'deletion')}`
    return {
      outcome: 'done' as const,
      text: `${what} of ${name} will be done. What is deleted goes to the trash.`,
    }
  },
)

function heldOf({ heldDeletes: text }: DriveRow): { local: number; remote: number } {
  return text === null ? { local: 0, remote: 0 } : (JSON.parse(text) as { local: number; remote: number })
}

export const heldDeleteRoutes = [showHeld, allowHeld]
