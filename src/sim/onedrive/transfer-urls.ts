/** Secret addresses: of downloads, which need no sign-in and end soon, of uploads, and of copies under way. */
import type { Item } from './item.ts'
import type { SimDrive } from './sim-drive.ts'

export const downloadPrefix = '/dl/'
export const uploadPrefix = '/up/'
export const monitorPrefix = '/monitor/'

/** Stands between an item's id and that of a version. */
export const VERSION_MARK = '~'

const DOWNLOAD_MS_DEFAULT = 3_600_000

export class TransferUrls {
  /** How long a download address is good for. */
  downloadMs = DOWNLOAD_MS_DEFAULT
  readonly #seed: number
  #made = 0

  constructor(seed: number) {
    this.#seed = seed
  }

  /** `version`: what the file held before. */
  download(origin: string, sim: SimDrive, item: Item, version?: string): string {
    this.#made += 1
    const expiresMs = sim.state.nowMs + this.downloadMs
    const name = version === undefined ? item.id : `${item.id}${VERSION_MARK}${version}`
    const place = `${sim.id}/${name}`
    const tempauth = `${expiresMs.toString(36)}.${this.#made.toString(36)}`
    return `${origin}${downloadPrefix}${encodeURIComponent(sim.id)}/${encodeURIComponent(name)}?tempauth=${tempauth}.${this.#sign(place + tempauth)}`
  }

  /** Whether the address was made here and still holds. */
  check(input: { driveId: string; itemId: string; tempauth: string; nowMs: number }): boolean {
    const [expires = '', number = '', sign] = input.tempauth.split('.')
    const expected = this.#sign(`${input.driveId}/${input.itemId}${expires}.${number}`)
    return sign === expected && Number.parseInt(expires, 36) > input.nowMs
  }

  upload(origin: string, sim: SimDrive, sessionId: string): string {
    return `${origin}${uploadPrefix}${encodeURIComponent(sim.id)}/${sessionId}`
  }

  monitor(origin: string, id: string): string {
    return `${origin}${monitorPrefix}${id}`
  }

  /** Not secret from anybody who tries; enough to see an address that was made up. */
  #sign(text: string): string {
    let sum = this.#seed ^ 0x811c9dc5
    for (let at = 0; at < text.length; at++) sum = Math.imul(sum ^ text.charCodeAt(at), 0x01000193)
    return (sum >>> 0).toString(36)
  }
}
