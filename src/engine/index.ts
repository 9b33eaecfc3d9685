/** The engine as a library: `import { createEngine, defineJob } from 'tidemark/engine'`. */
export { type Clock, FakeClock, systemClock } from '../base/clock.ts'
export { type ErrorKind, TidemarkError, UsageError } from '../base/errors.ts'
export { type Random, seededRandom, systemRandom } from '../base/random.ts'
export type {
  EnqueueResult,
  JobRow,
  Lane,
  NewSegment,
  RowLocks,
  SegmentRow,
  StreamRow,
  Tx,
} from '../ledger/contract.ts'
export { Ledger } from '../ledger/ledger.ts'
export { openLedger } from '../ledger/open.ts'
export { createEngine, Engine, type EngineOptions } from './engine.ts'
export type { EngineWork } from './intake.ts'
export {
  type EnqueueOptions,
  type JobKind,
  type JobOptions,
  type JobRequest,
  JobStopped,
  type Outcome,
  type Progress,
  type RunContext,
} from './job-kind.ts'
export { defineJob, request } from './kinds.ts'
export { throttledBody } from './limits/bandwidth.ts'
export type { BudgetSpec } from './limits/spec.ts'
export { webhookSink } from './observe/alert-delivery.ts'
export type { EngineEvent, NumberedEvent } from './observe/events.ts'
export type { LiveSnapshot } from './observe/live.ts'
export { createLogger, type Logger } from './observe/log.ts'
export { logEvents } from './observe/log-events.ts'
export { handleSignals } from './shutdown.ts'
