/**
 * The simulated OneDrive of the demo, with an other device that is alive: files that come, change, move and go every
 * few seconds, and now and then one that is changed on both sides at once.
 *
 * What it begins with is made from the seed. Whatever changes the drive after that, be it the other device or
 * Tidemark itself, is written to a journal before it is done (drive-journal.ts), so that the next start makes
 * the same drive: same ids, same order of changes.
 */
import { type Random, seededRandom } from '../../../base/random.ts'
import type { Device } from '../../../sim/onedrive/device.ts'
import { itemPath } from '../../../sim/onedrive/item.ts'
import type { SimDrive } from '../../../sim/onedrive/sim-drive.ts'

/** So that a demo that is left alone for days does not grow without end. */
const FILES_MAX = 400
const VIDEO_BYTES = 24 * 2 ** 20
/** One in so many steps changes a file on both sides. */
const CLASH_EVERY = 12

/** What the drive begins with; the same for the same seed. */
export function furnish(device: Device, seed: number): void {
  const random = seededRandom(seed * 7_919)
  for (const [path, text] of DEMO_TEXTS) device.write(path, text)
  for (let at = 1; at <= 12; at++) {
    const picture = Buffer.concat([PICTURE, Buffer.from([at, Math.floor(random() * 256)])])
    device.write(`Pictures/Summer/IMG_${String(1_000 + at)}.png`, picture)
  }
  for (let at = 1; at <= 18; at++) {
    device.write(
      `Documents/Invoices/Invoice ${2_020 + (at % 6)}-${String(at).padStart(2, '0')}.txt`,
      lines(random, 20),
    )
  }
  device.write('Videos/Garden in May.mov', { seed, size: VIDEO_BYTES })
}

export type DemoStep = {
  /** What happened, for the log of the demo. */
  text: string
  /** Changed here at the same moment: the path and what stands in it then. */
  clash?: { path: string; text: string }
}

/** One thing that the other device does. `n` counts them: the same drive and number give the same step. */
export function deviceStep(
  { device, state }: SimDrive,
  { seed, n, hasConflict }: { seed: number; n: number; hasConflict: boolean },
): DemoStep {
  const random = seededRandom(seed * 1_000_003 + n)
  const texts = [...state.items()]
    .filter(({ kind, name }) => kind === 'file' && /\.(?:md|txt)$/.test(name) && !/\.conflict-/.test(name))
    .map(itemPath)
    .sort()
  const pick = (): string => texts[Math.floor(random() * texts.length)]!
  if (texts.length === 0) return create(device, random, n)
  if (!hasConflict && random() < 1 / CLASH_EVERY) {
    const path = pick()
    device.edit(path, `${lines(random, 6)}Changed on the other device.\n`)
    return {
      text: `edited ${path} on both sides`,
      clash: { path, text: `${lines(random, 6)}Changed here.\n` },
    }
  }
  const chance = random()
  if (texts.length > FILES_MAX || chance < 0.1) {
    const path = pick()
    device.delete(path)
    return { text: `deleted ${path}` }
  }
  if (chance < 0.35) return create(device, random, n)
  if (chance < 0.5) return rename(device, random, pick())
  const path = pick()
  device.append(path, lines(random, 1 + Math.floor(random() * 4)))
  return { text: `edited ${path}` }
}

function create(device: Device, random: Random, n: number): DemoStep {
  const name = NAMES[Math.floor(random() * NAMES.length)]!
  const path = `Inbox/${name} ${n}.md`
  device.write(path, `# ${name}\n\n${lines(random, 8)}`)
  return { text: `made ${path}` }
}

function rename(device: Device, random: Random, path: string): DemoStep {
  const slash = path.lastIndexOf('/')
  const [folder, name] = [path.slice(0, slash + 1), path.slice(slash + 1)]
  const plain = name.replace(/^(?:Old|New|Final) /, '')
  const to = `${folder}${['Old', 'New', 'Final'][Math.floor(random() * 3)]} ${plain}`
  if (device.has(to)) return { text: `left ${path} as it is` }
  device.move(path, to)
  return { text: `renamed ${path}` }
}

function lines(random: Random, count: number): string {
  return Array.from({ length: count }, () => `${LINES[Math.floor(random() * LINES.length)]}\n`).join('')
}

const LINES: readonly string[] = [
  'Water the tomatoes before nine.',
  'Ask the neighbours about the fence.',
  'Three bids, all too high; call the second one again.',
  'Trains leave at ten past every hour.',
  'The key is with Maria until Sunday.',
  'Bring boots: the path by the lake floods.',
  'Half of it is paid, the rest at the end of the month.',
  'She liked the blue one better.',
  'Do not forget the birthday on the 14th.',
  'The roof holds, the gutter does not.',
  'Two loaves, cheese, apples, something sweet.',
  'Read chapter four again; the proof has a gap.',
]

const NAMES: readonly string[] = [
  'Shopping',
  'Meeting notes',
  'Ideas',
  'Travel plan',
  'Recipe',
  'Letter',
  'Reading list',
  'Repairs',
  'Übersicht',
  'Réunion',
  'Skizze',
  'Packing list',
]

const DEMO_TEXTS: readonly (readonly [path: string, text: string])[] = [
  [
    'Welcome.md',
    '# Welcome\n\nThis folder and a simulated OneDrive are kept in step. Change something here.\n',
  ],
  ['Documents/House/Roof.md', '# Roof\n\nThe roof holds, the gutter does not.\n'],
  ['Documents/House/Budget.txt', 'Paint 240\nGutter 610\nFence 1,150\n'],
  ['Documents/Travel/Köln.md', '# Köln\n\nTrains leave at ten past every hour.\n'],
  ['Documents/Travel/Packing.txt', 'boots\nraincoat\ncharger\n'],
  ['Documents/Letters/To Ada.md', 'Dear Ada,\n\nthe lake is frozen already.\n'],
  ['Projects/Boat/Plan.md', '# Boat\n\n1. Sand the hull\n2. Varnish\n3. Wait\n'],
  ['Projects/Boat/Parts.txt', 'varnish\nbrass screws\nrope\n'],
  ['Projects/Garden/Beds.md', '# Beds\n\nTomatoes by the wall, beans behind.\n'],
]

/** A picture of one dot; what follows in a file is not looked at. */
const PICTURE = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
)
