/**
 * What commands about work take as arguments, read strictly: a slip is answered with what is allowed.
 */
import { Option } from 'commander'
import { UsageError } from '../../base/errors.ts'
import { parseDuration } from '../../base/format.ts'
import { nearest } from '../../config/nearest.ts'
import { JOB_STATES, type JobState } from '../../ledger/states.ts'

export const LIMIT_MAX = 1_000
export const LIMIT_DEFAULT = 50

/** `12`, or `#12` as it is printed. */
export function parseId(
  text: string,
  what = 'job',
  list = what === 'job' ? 'jobs list' : 'bad list',
): number {
  const id = /^#?\d{1,15}$/.test(text) ? Number(text.replace('#', '')) : 0
  if (id >= 1) return id
  throw new UsageError(`"${text}" is not the number of a ${what}.`, {
    hint: `Give the number as \`tidemark ${list}\` shows it, such as 12.`,
  })
}

/** For an argument that can be given several times. */
export function parseIds(what: 'job' | 'bad item') {
  return (text: string, earlier: number[] = []): number[] => {
    const id = parseId(text, what)
    return earlier.includes(id) ? earlier : [...earlier, id]
  }
}

export function stateOption(description: string, states: readonly JobState[] = JOB_STATES): Option {
  // The choices are for completion; the parser below says more than the one that they bring.
  return new Option('--state <state>', description).choices(states).argParser((text) => {
    const state = states.find((one) => one === text.trim().toLowerCase())
    if (state) return state
    throw new UsageError(`"${text}" is not a state that can be given here${didYouMean(text, states)}`, {
      hint: `The states are ${states.join(', ')}.`,
    })
  })
}

export function idOption(flag: string, description: string): Option {
  const name = flag.replace(/^--/, '').replace(/ .*$/, '')
  return new Option(flag, description).argParser((text) => parseNumber(text, `--${name}`))
}

export function limitOption(): Option {
  return new Option('--limit <number>', `how many to show, up to ${LIMIT_MAX}`)
    .default(LIMIT_DEFAULT)
    .argParser((text) => {
      const limit = parseNumber(text, '--limit')
      if (limit <= LIMIT_MAX) return limit
      throw new UsageError(`--limit is ${text}, but at most ${LIMIT_MAX} are shown at once.`, {
        hint: 'What is printed after a page names the command for the next one.',
      })
    })
}

/** Milliseconds. */
export function durationOption(flag: string, description: string): Option {
  const name = flag.replace(/ .*$/, '')
  return new Option(flag, description).argParser((text) => {
    const ms = parseDuration(text)
    if (ms !== undefined) return ms
    throw new UsageError(`${name} is "${text}", which is not a length of time.`, {
      hint: 'Write it like 90s, 15m, 2h, 7d or 1d12h.',
    })
  })
}

function parseNumber(text: string, flag: string): number {
  if (/^#?\d{1,15}$/.test(text) && Number(text.replace('#', '')) >= 1) return Number(text.replace('#', ''))
  throw new UsageError(`${flag} is "${text}", but it must be a whole number from 1 up.`)
}

/** `; did you mean pending?`, or just the end of the sentence. */
export function didYouMean(text: string, known: Iterable<string>): string {
  const near = nearest(text, known)
  return near === undefined ? '.' : `; did you mean ${near}?`
}
