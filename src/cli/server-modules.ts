/** The systems that the server and MCP offer. To add one, write its module and name it here. */
import { engineModule } from '../server/engine-api/module.ts'
import { filesModule } from '../server/files-api/module.ts'
import { mailModule } from '../server/mail-api/module.ts'
import type { ServerModule } from '../server/module.ts'

export const modules: readonly ServerModule[] = [engineModule, mailModule, filesModule]
