/**
 * What a system is. An app is one folder in src/apps and one line in its registry; everything that is the same for all
 * of them (opening, following its sources, the server, the command line, the demo) is written once, over what is
 * declared here.
 *
 * The constant is light: whoever prints `--help` loads all of them. What takes time to load is imported by its functions.
 */
import type { Section } from '../config/section.ts'
import type { Tx } from '../ledger/contract.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { AccountPart } from './accounts/account-use.ts'
import type { AppNoun } from './cli/noun.ts'
import type { AppDemo } from './demo.ts'
import type { ServerModule } from './module.ts'
import type { AppLook, AppOpening, OpenApp } from './runtime.ts'

export type App<Open extends OpenApp = OpenApp> = AppOpening<Open> & {
  /** The services whose accounts it works for; none where its sources are no accounts. */
  readonly services: readonly string[]
  /** Its section of the configuration, named as the app, and those of its services. */
  readonly settings: () => Promise<readonly Section[]>
  /** What it makes of these accounts. */
  readonly accounts?: AccountPart
  /** A user is removed: what it keeps for them goes in the same transaction, where it keeps anything. */
  readonly forgetUser?: (tx: Tx, userId: number) => Promise<void>
  /** For who only looks. What an app keeps in the ledger is made with the first look: ask where it has a stream. */
  readonly look: (ledger: Ledger) => Promise<AppLook>
  /** Its routes, live snapshot and MCP tools. */
  readonly server: () => Promise<ServerModule>
  /** Its part of the demo. */
  readonly demo: () => Promise<AppDemo>
  /** Its noun on the command line: what the verbs of every app say of it, and the verbs of its own. */
  readonly noun: AppNoun
}
