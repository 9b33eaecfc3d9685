/** Hashes the local content, so that it can be told from what both sides last agreed on. */
import type { VerbRun } from '../action.ts'
import { lookOf, plainStat } from '../local/stat.ts'
import { setLocalHash } from '../store/local-tree.ts'
import { freeNode } from '../store/open-nodes.ts'
import { hashOpened } from './content.ts'
import { openAsSeen, otherHere, rootOf } from './local-side.ts'

export const checkRun: VerbRun = async (context) => {
  const { drive, job, node } = context
  const local = context.case.local!
  const opened = await openAsSeen(context, rootOf(drive), local)
  if ('ended' in opened) return opened.ended
  const { file, look } = opened
  try {
    const hash = await hashOpened(file, look, job)
    if (hash === undefined) return otherHere(context, local, lookOf(await file.stat({ bigint: true })))
    return {
      end: 'done',
      write: async (tx) => {
        await setLocalHash(tx, drive.name, { id: local.id, stat: plainStat(look), hash })
        return freeNode(tx, drive.name, node)
      },
    }
  } finally {
    await file.close()
  }
}
