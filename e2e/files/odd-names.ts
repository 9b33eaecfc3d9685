/**
 * Names with which something takes no part: those that are left out, and those that are not valid text, which only this
 * side can have. In a history `%ff` stands for that byte.
 */
import { readdirSync } from 'node:fs'

const RAW = '%ff'
const RAW_BYTE = Buffer.from([0xff])

export function isRaw(path: string): boolean {
  return path.includes(RAW)
}

export function isLeftOut(path: string): boolean {
  return path.split('/').some((name) => name.toLowerCase().endsWith('.tmp'))
}

export function takesNoPart(path: string): boolean {
  return isRaw(path) || isLeftOut(path)
}

/** As the file system has it. */
export function diskPath(path: string): string | Buffer {
  if (!isRaw(path)) return path
  const parts = path.split(RAW).flatMap((part, at) => (at === 0 ? [part] : [RAW_BYTE, part]))
  return Buffer.concat(parts.map((part) => (typeof part === 'string' ? Buffer.from(part) : part)))
}

/** As a history has them. */
export function namesIn(folder: string): string[] {
  const names = readdirSync(diskPath(folder), { encoding: 'buffer' })
  return names.map((name) => name.toString().replaceAll('\ufffd', RAW)).sort()
}
