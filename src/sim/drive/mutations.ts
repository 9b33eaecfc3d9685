/** What a fault rule does to somebody's Drive: files that come, change and go while they are listed. */
import type { FaultEffect } from '../fault-rules.ts'
import { type Item, isFolder, isNative } from './item.ts'
import type { DriveWorld } from './world.ts'

type Mutate = Extract<FaultEffect, { do: 'mutate' }>

const LONG_AGO_MS = Date.UTC(2020, 0, 1)

export function mutateWorld(world: DriveWorld, address: string, { what, count, random }: Mutate): void {
  for (let done = 0; done < count; done++) {
    if (what === 'arrive' || what === 'arrive-old') arrive(world, address, { what, random })
    else {
      const own = [...world.items.values()].filter((item) => isOwnFile(item, address))
      const item = own[Math.floor(random() * own.length)]
      if (!item) return
      if (what === 'delete') world.trash(item.id, address)
      else if (isNative(item)) world.rename(item.id, `${item.name} (renamed)`, address)
      else world.edit(item.id, `${item.name} was edited, version ${item.version + 1}.\n`, { by: address })
    }
  }
}

function arrive(world: DriveWorld, by: string, { what, random }: Pick<Mutate, 'what' | 'random'>): void {
  const number = Math.floor(random() * 1e9)
  const content = `Arrived with number ${number}.\n`
  // An old file that was uploaded just now: its own time says nothing about when it came.
  const times = what === 'arrive-old' ? { modifiedMs: Math.floor(random() * LONG_AGO_MS) } : {}
  world.create({ name: `Arrived ${number}.txt`, by, content, ...times })
}

function isOwnFile(item: Item, address: string): boolean {
  return item.owner === address && !isFolder(item) && item.trashed === undefined
}
