/** The engine as a library: `import { createEngine, defineJob } from 'tidemark/engine'`. */
export { type Clock, FakeClock, systemClock } from '../clock.ts'
export { type ErrorKind, TidemarkError, UsageError } from '../errors.ts'
export type {
  EnqueueResult,
  JobRow,
  Lane,
  NewSegment,
  SegmentRow,
  StreamRow,
  Tx,
} from '../ledger/contract.ts'
export { Ledger } from '../ledger/ledger.ts'
export { openLedger } from '../ledger/open.ts'
export { createEngine, Engine, type EngineOptions, type EngineWork } from './engine.ts'
export type { EngineEvent, NumberedEvent } from './events.ts'
export {
  defineJob,
  type EnqueueOptions,
  type JobKind,
  type JobOptions,
  type JobRequest,
  request,
} from './kinds.ts'
export type { Outcome } from './outcome.ts'
export { handleSignals } from './shutdown.ts'
export { JobStopped, type Progress, type RunContext } from './run-context.ts'
