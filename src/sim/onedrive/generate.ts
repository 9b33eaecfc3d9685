/** Drives made from a seed: folders, names and sizes as people have them, the same for the same options. */
import type { Random } from '../../base/random.ts'
import type { Device } from './device.ts'
import type { SimDrive } from './sim-drive.ts'

export type GenerateDriveOptions = {
  files: number
  random: Random
  nowMs: number
  /** `mixed`: all sorts. `small`: at most 4 KiB each, for benches. */
  sizes?: 'mixed' | 'small'
  /** How many files a folder has, about. */
  filesPerFolder?: number
  /** This many more of this size, made on demand. */
  large?: { files: number; bytes: number }
}

const FILES_MAX = 2_000_000
const DEPTH_MAX = 7
const YEARS_MS = 5 * 365 * 86_400_000
const SMALL_BYTES_MAX = 4_096
const WORDS = [
  ...['Budget', 'holiday', 'Invoice', 'notes', 'Plan', 'photo', 'Meeting', 'draft', 'Report', 'tax'],
  ...[
    'Übersicht',
    'Reise nach Köln',
    'ångström',
    'crème brûlée',
    'résumé',
    'данные',
    '報告書',
    'فاتورة',
    'naïve',
  ],
  ...['final', 'FINAL v2', 'copy', 'old', 'scan', 'IMG', 'family', 'garden', 'music', 'letters', '🎉 party'],
]
const EXTENSIONS = ['txt', 'md', 'pdf', 'jpg', 'docx', 'xlsx', 'png', 'heic', 'zip', 'json', '']

export function generateDrive({ state, device }: SimDrive, options: GenerateDriveOptions): void {
  const { files, random, nowMs, filesPerFolder = 40 } = options
  if (!(files >= 0 && files <= FILES_MAX)) throw new RangeError(`a drive has 0 to ${FILES_MAX} files`)
  const folders = makeFolders(device, random, Math.ceil(files / filesPerFolder))
  for (let at = 0; at < files; at++) {
    const folder = folders[Math.floor(random() * folders.length)]!
    const parent = folder === '' ? state.root : device.item(folder)
    const modifiedMs = Math.floor(nowMs - random() * YEARS_MS)
    const content = state.addContent(generatedContent(random, at, options.sizes ?? 'mixed'))
    state.putFile({
      parent,
      name: generatedName(random, at),
      content,
      conflict: 'rename',
      times: { createdMs: modifiedMs, modifiedMs },
    })
  }
  const { large } = options
  for (let at = 0; at < (large?.files ?? 0); at++) {
    device.write(`large/video ${at + 1}.mov`, { seed: 1_000 + at, size: large!.bytes })
  }
}

function makeFolders(device: Device, random: Random, count: number): string[] {
  const folders = ['']
  for (let at = 0; at < count; at++) {
    const parent = folders[Math.floor(random() * folders.length)]!
    const isDeep = parent.split('/').length >= DEPTH_MAX
    const path = `${isDeep || parent === '' ? '' : `${parent}/`}${wordOf(random)} ${at}`
    device.mkdir(path)
    folders.push(path)
  }
  return folders
}

function generatedName(random: Random, at: number): string {
  const extension = EXTENSIONS[Math.floor(random() * EXTENSIONS.length)]!
  const words =
    random() < 0.02 ? Array.from({ length: 15 }, () => wordOf(random)) : [wordOf(random), wordOf(random)]
  const stem = `${words.join(random() < 0.5 ? ' ' : '-')} ${at}`
  return extension === '' ? stem : `${stem}.${random() < 0.1 ? extension.toUpperCase() : extension}`
}

function wordOf(random: Random): string {
  return WORDS[Math.floor(random() * WORDS.length)]!
}

/** One in fifty is empty, most are small, a few have some megabytes. */
function generatedContent(
  random: Random,
  at: number,
  sizes: 'mixed' | 'small',
): Uint8Array | { seed: number; size: number } {
  const chance = random()
  if (chance < 0.02) return Buffer.alloc(0)
  const text = `${wordOf(random)} ${at} ${Math.floor(random() * 2 ** 32).toString(36)}\n`
  if (sizes === 'small' || chance < 0.9)
    return Buffer.from(text.repeat(1 + Math.floor(random() * 40)).slice(0, SMALL_BYTES_MAX))
  if (chance < 0.995) return Buffer.from(text.repeat(1_000 + Math.floor(random() * 5_000)))
  return { seed: at, size: Math.floor((4 + random() * 20) * 2 ** 20) }
}
