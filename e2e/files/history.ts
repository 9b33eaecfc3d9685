/**
 * Histories of a folder and a drive: what people do on both sides, and what happens to the sync meanwhile. A history
 * is a list of lines, so that one that fails can be pasted as a test:
 *
 *   here write a/x        there move a b        here swap a b        both write x        there delete a
 *   sync                  a look at both sides is asked for
 *   settle                waits until nothing is left to do
 *   crash                 the process ends between two steps, and another one begins
 *   faults flaky          quirk hashMissing     expire-delta         skew 3600000
 *   mode upload-only      policy keep-local     skip *.docx          skip none
 *   here edit a           other bytes in its place; size and time are what they were
 *   there exchange a      records of 160 bytes change places, which QuickXorHash does not tell
 *   there rules *.docx    what takes no part, as the folder's own file says
 *   here link a           it is put on another disk, and a link to it is left in its place
 *   here unlink a         it comes back (with what was saved there, if anything was)
 *   here alias a b        b becomes a link to a, both in the folder
 *   links follow          links leave
 *   here write x.tmp      a name that is left out; `here move a x%ff`: one that is not valid text
 *   here keep             somebody copies the whole folder; `here restore`: puts that copy in its place, with old times
 *   there many d          two dozen files; `there overwrite d`: each of them gets another content at once
 *   answer yes            said to what waits for it; `answer no`: who has overwritten files puts back what they were
 *
 * `+12 ` in front: so many steps of the sync later. Who does something that cannot be done (what should be moved is
 * not there) does nothing.
 */
import type { ConflictPolicy, Mode } from '../../src/apps/files/decide.ts'
import type { Random } from '../../src/base/random.ts'
import type { Quirks } from '../../src/sim/onedrive/quirks.ts'

export type Side = 'here' | 'there'

export type Act =
  | { do: Verb; side: Side; path: string; size: Size }
  | { do: 'move' | 'swap' | 'copy'; side: Side; path: string; to: string }
  | { do: 'link' | 'unlink'; side: 'here'; path: string }
  | { do: 'alias'; side: 'here'; path: string; to: string }
  | { do: 'rules'; side: Side; pattern: string }
  | { do: 'keep' | 'restore'; side: 'here' }
  | { do: 'many' | 'overwrite'; side: Side; path: string }
  | { do: 'answer'; isYes: boolean }
  | { do: 'both'; path: string }
  | { do: 'sync' | 'settle' | 'crash' | 'expire-delta' }
  | { do: 'faults'; profile: string }
  | { do: 'quirk'; quirk: keyof Quirks }
  | { do: 'skew'; ms: number }
  | { do: 'mode'; mode: Mode }
  | { do: 'policy'; policy: ConflictPolicy }
  | { do: 'links'; areFollowed: boolean }
  /** What takes no part from now on; undefined: everything does. */
  | { do: 'skip'; pattern: string | undefined }

export type Verb = 'write' | 'save' | 'touch' | 'mkdir' | 'delete' | 'edit' | 'exchange'
/** `records`: eight of 160 bytes. */
export type Size = 'small' | 'empty' | 'large' | 'records'
export type Step = { gap: number; act: Act }

const SIZES: Record<string, Size> = { empty: 'empty', large: 'large', records: 'records' }

export function parseStep(line: string): Step {
  const words = line.split(' ')
  const gap = words[0]?.startsWith('+') ? Number(words.shift()) : 0
  return { gap, act: parseAct(words, line) }
}

function parseAct(words: readonly string[], line: string): Act {
  const [first, second, third = '', fourth] = words
  if (first === 'sync' || first === 'settle' || first === 'crash' || first === 'expire-delta')
    return { do: first }
  if (first === 'faults') return { do: 'faults', profile: second ?? 'none' }
  if (first === 'quirk') return { do: 'quirk', quirk: second as keyof Quirks }
  if (first === 'skew') return { do: 'skew', ms: Number(second) }
  if (first === 'mode') return { do: 'mode', mode: second as Mode }
  if (first === 'policy') return { do: 'policy', policy: second as ConflictPolicy }
  if (first === 'links') return { do: 'links', areFollowed: second === 'follow' }
  if (first === 'skip') return { do: 'skip', pattern: second === 'none' ? undefined : second }
  if (first === 'answer') return { do: 'answer', isYes: second === 'yes' }
  if (first === 'both') return { do: 'both', path: third }
  if (first !== 'here' && first !== 'there') throw new Error(`Not a line of a history: ${line}`)
  if (second === 'link' || second === 'unlink') return { do: second, side: 'here', path: third }
  if (second === 'keep' || second === 'restore') return { do: second, side: 'here' }
  if (second === 'many' || second === 'overwrite') return { do: second, side: first, path: third }
  if (second === 'alias') return { do: 'alias', side: 'here', path: third, to: fourth ?? '' }
  if (second === 'move' || second === 'swap' || second === 'copy') {
    return { do: second, side: first, path: third, to: fourth ?? '' }
  }
  if (second === 'rules') return { do: 'rules', side: first, pattern: third }
  return { do: second as Verb, side: first, path: third, size: SIZES[fourth ?? ''] ?? 'small' }
}

/** For pasting: other letters than plain ones are escaped, since their forms look the same. */
export function pasted(lines: readonly string[]): string {
  const quoted = lines.map((line) =>
    `'${line}'`.replaceAll(
      /[^\x20-\x7e]/g,
      (letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}`,
    ),
  )
  return `await replay([\n${quoted.map((line) => `  ${line},\n`).join('')}])`
}

/** Few, so that they meet: other cases and other forms of the same name among them. */
const NAMES = ['a', 'b', 'x', 'A', 'r.docx', 'caf\u00e9', 'cafe\u0301'] as const
const NAME_WEIGHTS = [5, 5, 5, 1, 1, 1, 1] as const
const QUIRKS: readonly (keyof Quirks)[] = [
  'driveIdLosesZero',
  'driveIdChangesCase',
  'hashMissing',
  'hashMissingOnEmpty',
  'hashBogusOnDeleted',
  'freshChildNotFound',
  'freshItemNotFound',
  'freshPathNotFound',
  'freshDownloadUnauthorized',
  'mkdirEmptyBody',
  'redirectWithoutLocation',
  'deltaCreateBeforeDelete',
  'deltaDuplicates',
  'deltaParentsLast',
  'deltaListsDeletedDescendants',
  'deltaLagMs',
  'namesEncoded',
  'pathMissing',
  'wholeSecondTimes',
  'yearOneDates',
  'cTagMissing',
  'deletedNameMissing',
  'deletedSizeMissing',
  'sessionIfMatchRefused',
  'sessionIfMatchForgotten',
  'sessionsLeak',
  'sessionRefusesAuthorization',
  'rewritesUploads',
  'rewritesUploadsLater',
  'rangeIgnored',
  'changedNotFoundMs',
]
const SKEWS_MS = [-86_400_000, -3_600_000, 3_600_000, 86_400_000 * 400] as const
/** By which a clock is set meanwhile. */
const JUMPS_MS = [-86_400_000, -300_000, 3_600_000, 86_400_000 * 30] as const
const FAULTS = ['flaky', 'flaky', 'flaky', 'lost', 'forbidden'] as const
const POLICIES = ['keep-local', 'keep-remote', 'manual'] as const
const SKIPPED = ['b', 'x', 'a/', 'a/x', '/a', '*.docx', 'A', 'none', 'none', 'none'] as const

/** What a history may have besides. */
export const ODDITIES = ['left-out', 'raw', 'backup', 'many'] as const
export type Oddity = (typeof ODDITIES)[number]
const ODD: readonly (Oddity | undefined)[] = [undefined, undefined, undefined, ...ODDITIES]
const ODD_NAMES: Record<string, readonly string[]> = {
  'left-out': ['x.tmp', 'b.tmp'],
  raw: ['x%ff', 'x.tmp'],
}
const ODD_SHARE = 0.15

export type HistoryOptions = {
  /** Things that people do. */
  acts: number
  /** How often the sync is killed, of a hundred acts. */
  crashes: number
  /** Somebody works with links; undefined: in some histories. */
  hasLinks?: boolean
  /** Undefined: in some histories one of them. */
  oddity?: Oddity
}

export function makeHistory(random: Random, { acts, crashes, hasLinks, oddity }: HistoryOptions): string[] {
  const lines = makeWeather(random)
  const links = (hasLinks ?? (oddity === undefined && random() < 0.2)) ? 0.3 : 0
  const odd = links > 0 ? undefined : (oddity ?? pick(ODD, random))
  const model = new Likely(random, ODD_NAMES[odd ?? ''] ?? [])
  const [skips, jumps] = [random() < 0.15 ? 0.1 : 0, random() < 0.05 ? 0.1 : 0]
  if (odd === 'many') lines.push(`${random() < 0.5 ? 'here' : 'there'} many m`, 'settle')
  let skewMs = Number(lines.find((line) => line.startsWith('skew '))?.slice('skew '.length) ?? 0)
  for (let n = 0; n < acts; n++) {
    const gap = random() < 0.4 ? '' : `+${Math.ceil(random() ** 2 * 60)} `
    lines.push(gap + model.next())
    if (random() < 0.35) lines.push('sync')
    if (random() < 0.12) lines.push('settle')
    if (random() * 100 < crashes) lines.push(`+${Math.ceil(random() * 60)} crash`)
    if (random() < 0.01) lines.push('expire-delta')
    if (random() < skips) lines.push(makeSkip(random))
    if (random() < links) {
      // What is in step is what a look could miss.
      if (random() < 0.6) lines.push('settle')
      lines.push(model.link())
    }
    if (odd === 'backup' && random() < 0.2) lines.push(random() < 0.6 ? 'here keep' : 'here restore')
    if (odd === 'many' && random() < 0.12) lines.push(...makeOverwrite(random))
    if (random() < jumps) {
      skewMs += pick(JUMPS_MS, random)
      lines.push(`skew ${skewMs}`)
    }
  }
  return lines
}

/** Somebody is asked about it, unless a crash or a fault comes between. */
function makeOverwrite(random: Random): string[] {
  const answer = random() < 0.3 ? [] : [`answer ${random() < 0.5 ? 'yes' : 'no'}`]
  return [
    `${random() < 0.5 ? 'here' : 'there'} overwrite m`,
    ...(random() < 0.7 ? ['settle'] : ['sync']),
    ...answer,
  ]
}

/** Said by the settings here, or by a file that either side may change. */
function makeSkip(random: Random): string {
  const [chance, pattern] = [random(), pick(SKIPPED, random)]
  return chance < 0.5 ? `skip ${pattern}` : `${chance < 0.75 ? 'here' : 'there'} rules ${pattern}`
}

function makeWeather(random: Random): string[] {
  const lines: string[] = []
  if (random() < 0.5) {
    const share = random() < 0.3 ? 0.5 : 0.08
    for (const quirk of QUIRKS) if (random() < share) lines.push(`quirk ${quirk}`)
  }
  if (random() < 0.5) lines.push(`faults ${pick(FAULTS, random)}`)
  if (random() < 0.2) lines.push(`skew ${pick(SKEWS_MS, random)}`)
  if (random() < 0.15) lines.push(`mode ${random() < 0.5 ? 'download-only' : 'upload-only'}`)
  if (random() < 0.25) lines.push(`policy ${pick(POLICIES, random)}`)
  return lines
}

function pick<T>(list: readonly T[], random: Random): T {
  return list[Math.floor(random() * list.length)]!
}

/** What is likely to be there, so that most of what people do can be done. */
class Likely {
  readonly #random: Random
  readonly #paths = new Set<string>()

  readonly #oddNames: readonly string[]

  constructor(random: Random, oddNames: readonly string[]) {
    this.#random = random
    this.#oddNames = oddNames
  }

  next(): string {
    const side = this.#random() < 0.5 ? 'here' : 'there'
    const chance = this.#random() * 100
    if (chance < 30) return this.#write(`${side} ${this.#random() < 0.7 ? 'write' : 'save'}`)
    if (chance < 35) return this.#made(`${side} mkdir`, this.#newPath())
    if (chance < 38) return this.#write('both write')
    if (chance < 39) return `${side} touch ${this.#known()}`
    if (chance < 41) return `here edit ${this.#known()}`
    if (chance < 43) return this.#copy(side)
    if (chance < 46) return `${side} exchange ${this.#known()}`
    if (chance < 62) return this.#move(side)
    if (chance < 67) return `${side} swap ${this.#known()} ${this.#known()}`
    if (chance < 72) return this.#recase(side)
    if (chance < 78) return this.#replaceType(side)
    return this.#delete(side)
  }

  /** The same paths again and again, so that most links go away again. */
  link(): string {
    const chance = this.#random()
    if (chance < 0.2) return `links ${this.#random() < 0.6 ? 'follow' : 'leave'}`
    if (chance < 0.4) return `here alias ${this.#known()} ${this.#newPath()}`
    return `here ${chance < 0.75 ? 'link' : 'unlink'} ${this.#known()}`
  }

  #write(how: string): string {
    const path = this.#random() < 0.5 ? this.#known() : this.#newPath()
    const chance = this.#random()
    const size = chance < 0.05 ? ' empty' : chance < 0.055 ? ' large' : chance < 0.25 ? ' records' : ''
    return `${this.#made(how, path)}${size}`
  }

  #made(how: string, path: string): string {
    const names = path.split('/')
    for (let depth = 1; depth <= names.length; depth++) this.#paths.add(names.slice(0, depth).join('/'))
    return `${how} ${path}`
  }

  #copy(side: Side): string {
    const [from, to] = [this.#known(), this.#newPath()]
    this.#paths.add(to)
    return `${side} copy ${from} ${to}`
  }

  #move(side: Side): string {
    const from = this.#known()
    const to = this.#random() < 0.3 ? this.#known() : this.#newPath()
    this.#rename(from, to)
    return `${side} move ${from} ${to}`
  }

  #recase(side: Side): string {
    const from = this.#known()
    const slash = from.lastIndexOf('/') + 1
    const name = from.slice(slash)
    const other = name === name.toUpperCase() ? name.toLowerCase() : name.toUpperCase()
    const to = from.slice(0, slash) + other
    this.#rename(from, to)
    return `${side} move ${from} ${to}`
  }

  /** What comes next may well be in it, or a file in its place. */
  #replaceType(side: Side): string {
    const path = this.#known()
    this.#paths.add(`${path}/x`)
    return this.#random() < 0.5 ? `${side} write ${path}/x` : `${side} mkdir ${path}`
  }

  #delete(side: Side): string {
    const path = this.#known()
    // Often something takes its place: the path stays known.
    if (this.#random() < 0.6) this.#drop(path)
    return `${side} delete ${path}`
  }

  #rename(from: string, to: string): void {
    for (const path of [...this.#paths]) {
      if (path !== from && !path.startsWith(`${from}/`)) continue
      this.#paths.delete(path)
      this.#paths.add(to + path.slice(from.length))
    }
  }

  #drop(from: string): void {
    for (const path of [...this.#paths])
      if (path === from || path.startsWith(`${from}/`)) this.#paths.delete(path)
  }

  #known(): string {
    const paths = [...this.#paths]
    return paths[Math.floor(this.#random() * paths.length)] ?? this.#newPath()
  }

  #newPath(): string {
    const chance = this.#random()
    const depth = chance < 0.45 ? 1 : chance < 0.85 ? 2 : 3
    return Array.from({ length: depth }, () => this.#name()).join('/')
  }

  #name(): string {
    if (this.#oddNames.length > 0 && this.#random() < ODD_SHARE) return pick(this.#oddNames, this.#random)
    let left = this.#random() * NAME_WEIGHTS.reduce((sum, weight) => sum + weight, 0)
    for (const [index, weight] of NAME_WEIGHTS.entries()) {
      left -= weight
      if (left < 0) return NAMES[index]!
    }
    return NAMES[0]
  }
}
