/** Of each test of a file one world, whose mailbox is onboarded; closed behind it. */
import { afterEach } from 'node:test'
import { type AssistWorld, type AssistWorldOptions, startAssistWorld } from './assist-world.suite.ts'

export function onboardedWorlds(): (options?: AssistWorldOptions) => Promise<AssistWorld> {
  let world: AssistWorld | undefined
  afterEach(async () => {
    await world?.close()
    world = undefined
  })
  return async (options = {}) => {
    world = await startAssistWorld(options)
    await world.onboard()
    await world.settled()
    return world
  }
}
