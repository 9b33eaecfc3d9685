/** Many deletions or replacements at once wait for a yes: what they are, and saying it, with their number. */
import { z } from 'zod'
import { conflict } from '../../../app/problem.ts'
import { already, done, doneSchema } from '../../../app/schemas.ts'
import { formatCount } from '../../../base/format.ts'
import { counted } from '../../../base/wording.ts'
import { type Held, heldTotal } from '../guard.ts'
import { heldDeletes } from '../store/browse.ts'
import { sayYes } from '../store/guard.ts'
import { askForPlan, folderPairRow, folderParams, lookedInto } from './inputs.ts'
import type { FilesServices } from './route.ts'
import { route } from './route.ts'
import { heldDeletesSchema } from './schemas.ts'

const EXAMPLES_MAX = 50

const showHeld = route('GET /api/files/folders/{name}/held-deletes', {
  summary: 'Deletions, and files with another content, that wait for a yes since they are so many at once',
  params: folderParams,
  answer: heldDeletesSchema,
  handle: async ({ params: { name }, user }, services) => {
    await lookedInto(services, user, { name, what: 'listed held deletions' })
    const held = await heldOf(services, name)
    const { all, replaced } = heldTotal(held)
    const items = all === 0 ? [] : await heldDeletes(services.ledger, name, EXAMPLES_MAX)
    return { here: held.local, there: held.remote, replaced, total: all, items }
  },
})

const allowHeld = route('POST /api/files/folders/{name}/held-deletes', {
  status: 202,
  summary: 'Says yes to them; with their number, so that nobody says yes to more than was seen',
  description: '`already`: none waits. 409: it is another number by now.',
  errors: [409],
  params: folderParams,
  body: z.strictObject({ count: z.int().min(1).describe('The `total` that was shown') }),
  answer: doneSchema,
  handle: async ({ params: { name }, body: { count } }, services) => {
    const held = await heldOf(services, name)
    const { all: total, deleted, replaced } = heldTotal(held)
    if (total === 0) return already(`Nothing of ${name} waits for a yes.`)
    if (total !== count) {
      throw conflict(`${formatCount(total)} things wait by now, and not ${formatCount(count)}.`, {
        code: 'deletes-changed',
        hint: 'Look at them again before you say yes.',
      })
    }
    await services.files.store.write((tx) => sayYes(tx, name, held))
    await askForPlan(services, name)
    const texts = [
      ...(deleted > 0 ? [counted(deleted, 'deletion')] : []),
      ...(replaced > 0 ? [counted(replaced, 'replacement')] : []),
    ]
    return done(
      `${texts.join(' and ')} of ${name} will be done. What is deleted or replaced here goes to the trash.`,
    )
  },
})

/** As it is now: some of what waited when it was planned may have been done or undone since. */
async function heldOf(services: FilesServices, name: string): Promise<Held> {
  const row = await folderPairRow(services, name)
  const held = row.heldDeletes === null ? undefined : await services.files.store.heldAhead(name)
  return held ?? { local: 0, remote: 0 }
}

export const heldDeleteRoutes = [showHeld, allowHeld]
