/** Works for mailboxes until it is killed. Its one argument is what ChildOptions says, as JSON. */
import { type ChildOptions, startChildWorker } from '../../src/apps/assistant/assist-worker.suite.ts'

process.on('disconnect', () => process.exit(1))
await startChildWorker(JSON.parse(process.argv[2]!) as ChildOptions)
process.stdout.write('at work\n')
