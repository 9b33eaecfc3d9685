/** What another device does while a call is under way, where a fault rule says so. */
import type { Random } from '../../base/random.ts'
import type { MutationKind } from '../fault-rules.ts'
import type { Item } from './item.ts'
import type { SimDrive } from './sim-drive.ts'

const WALK_MAX = 64

/** `arrive` and `arrive-old`: a new file. `relabel`: a file is edited or renamed. `delete`: one is deleted. */
export function mutateDrive(
  { state }: SimDrive,
  { what, count, random }: { what: MutationKind; count: number; random: Random },
): void {
  for (let time = 0; time < count; time++) {
    const unique = Math.floor(random() * 2 ** 32).toString(36)
    if (what === 'arrive' || what === 'arrive-old') {
      const content = state.addContent(`arrived ${unique}\n`)
      const modifiedMs = what === 'arrive' ? state.nowMs : Math.floor(state.nowMs * random())
      state.putFile({ parent: state.root, name: `arrived ${unique}.txt`, content, times: { modifiedMs } })
      continue
    }
    const item = someFile(state.root, random)
    if (!item) continue
    if (what === 'delete') state.delete(item)
    else if (random() < 0.5) state.setContent(item, state.addContent(`edited ${unique}\n`))
    else state.update(item, { name: `renamed ${unique}.txt` })
  }
}

/** A walk down by chance; undefined where it ends in an empty folder. */
function someFile(from: Item, random: Random): Item | undefined {
  let item: Item | undefined = from
  for (let step = 0; step < WALK_MAX && item?.children; step++) {
    const children: readonly Item[] = [...item.children.values()]
    item = children[Math.floor(random() * children.length)]
  }
  return item?.kind === 'file' ? item : undefined
}
