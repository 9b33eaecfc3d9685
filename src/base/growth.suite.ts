/**
 * How work grows with what it is given, told by the time of the processor: that of the clock says how busy the machine
 * is. Eight times the input is allowed twenty times the work; work that grows with the square takes sixty-four.
 */
import assert from 'node:assert/strict'

const TIMES_LARGER = 8
const TIMES_WORK_MAX = 20
/** Less than this is noise. */
const CPU_MS_MIN = 3
/** A measurement is disturbed by others that use the memory, and by what is compiled meanwhile. Both only add. */
const TRIES = 4

/** `make` gives an input of a size, which is not counted. */
export function assertLinear<Input>(input: {
  sizeMax: number
  make: (size: number) => Input
  work: (of: Input) => void
}): void {
  const { sizeMax, make, work } = input
  const small = make(Math.ceil(sizeMax / TIMES_LARGER))
  const large = make(sizeMax)
  let smallMs = Number.POSITIVE_INFINITY
  let largeMs = Number.POSITIVE_INFINITY
  for (let tries = 0; tries < TRIES; tries++) {
    for (let round = 0; round < 2; round++)
      smallMs = Math.min(
        smallMs,
        cpuMsOf(() => work(small)),
      )
    largeMs = Math.min(
      largeMs,
      cpuMsOf(() => work(large)),
    )
    if (largeMs <= Math.max(smallMs, CPU_MS_MIN) * TIMES_WORK_MAX) return
  }
  assert.fail(
    `${TIMES_LARGER} times the input took ${Math.round(largeMs)} ms of the processor instead of ${Math.round(smallMs)}`,
  )
}

/** For what must not grow at all: the other may take three times the work of the one. */
export function assertNearlySame<Input>(input: {
  one: Input
  other: Input
  work: (of: Input) => void
}): void {
  let [oneMs, otherMs] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY]
  for (let tries = 0; tries < TRIES; tries++) {
    oneMs = Math.min(
      oneMs,
      cpuMsOf(() => input.work(input.one)),
    )
    otherMs = Math.min(
      otherMs,
      cpuMsOf(() => input.work(input.other)),
    )
    if (otherMs <= 3 * Math.max(oneMs, CPU_MS_MIN)) return
  }
  assert.fail(`${Math.round(otherMs)} ms of the processor instead of ${Math.round(oneMs)}`)
}

function cpuMsOf(work: () => void): number {
  const before = process.threadCpuUsage()
  work()
  const { user, system } = process.threadCpuUsage(before)
  return (user + system) / 1_000
}
