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
export { type Random, seededRandom, systemRandom } from '../random.ts'
export { webhookSink } from './alert-delivery.ts'
export { createEngine, Engine, type EngineOptions } from './engine.ts'
export type { EngineEvent, NumberedEvent } from './events.ts'
export type { EngineWork } from './intake.ts'
export {
  defineJob,
  type EnqueueOptions,
  type JobKind,
  type JobOptions,
  type JobRequest,
  request,
} from './kinds.ts'
export { throttledBody } from './limits/bandwidth.ts'
export type { BudgetSpec } from './limits/spec.ts'
export type { LiveSnapshot } from './live.ts'
export { createLogger, type Logger } from './log.ts'
export { logEvents } from './log-events.ts'
export type { Outcome } from './outcome.ts'
export { JobStopped, type Progress, type RunContext } from './run-context.ts'
export { handleSignals } from './shutdown.ts'
