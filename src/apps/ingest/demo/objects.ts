/**
 * What the demo's bucket and its drop folder hold: readings of tide gauges. Everything follows from the seed, so that a
 * cloud that is started again has the same objects, and a pipeline that was killed finds nothing new in them.
 */
import { gzipSync } from 'node:zlib'
import { type Random, seededRandom } from '../../../base/random.ts'

const HOUR_MS = 3_600_000
const READINGS = 24
const STATIONS = ['Northport', 'Harbour', 'Lighthouse', 'Westport', 'Estuary'] as const
const NOTES = [
  'the water stood as forecast',
  'swell from the north-west',
  'a spring tide, higher than the table said',
  'the float was cleaned',
  'ice on the gauge, read by hand',
] as const

export type DemoObject = {
  key: string
  body: string | Uint8Array
  atMs: number
  /** Its announcement never arrives: only a listing finds it. */
  isLost?: true
  /** It arrives twice: a queue promises at least once, and no more. */
  isTwice?: true
}

type Reading = { at: string; station: string; levelCm: number; severity: string; message: string }

/** What the bucket begins with. */
export function firstObjects({ seed, toMs, count }: { seed: number; toMs: number; count: number }) {
  const random = seededRandom(seed)
  const objects: DemoObject[] = Array.from({ length: count }, (_, n) =>
    bucketObject(n, { atMs: toMs - (count - n) * HOUR_MS, random }),
  )
  const storm = readingsOf({ station: 'Westport', atMs: toMs - HOUR_MS, random })
  storm.splice(9, 0, '{"station":"Westport","message":"surge <img src=x onerror=alert(1)> and then the li')
  objects.push({ key: 'gauges/storm.ndjson', body: storm.join('\n'), atMs: toMs - HOUR_MS })
  const whole = gzipSync(readingsOf({ station: 'Estuary', atMs: toMs - HOUR_MS, random }).join('\n'))
  const half = whole.subarray(0, Math.floor(whole.length / 2))
  objects.push({ key: 'gauges/cut-off.ndjson.gz', body: half, atMs: toMs - HOUR_MS })
  const unheard = csvOf({ station: 'Lighthouse', atMs: toMs - HOUR_MS, random })
  objects.push({ key: 'gauges/nobody-told.csv', body: unheard, atMs: toMs - HOUR_MS, isLost: true })
  return objects
}

const LOST_EVERY = 7

/** The n-th that arrives while the demo runs. */
export function arrival(n: number, { seed, atMs }: { seed: number; atMs: number }): DemoObject {
  const random = seededRandom(seed * 1_000_003 + n)
  const object = bucketObject(n, { atMs, random, folder: 'arrivals' })
  return n % LOST_EVERY === LOST_EVERY - 1 ? { ...object, isLost: true } : object
}

export function folderFile(n: number, { seed, atMs }: { seed: number; atMs: number }): string {
  const random = seededRandom(seed * 500_009 + n)
  return readingsOf({ station: STATIONS[n % STATIONS.length]!, atMs, random }).join('\n')
}

type Made = { atMs: number; random: Random; folder?: string }

function bucketObject(n: number, { atMs, random, folder = 'gauges' }: Made): DemoObject {
  const station = STATIONS[n % STATIONS.length]!
  const name = `${folder}/${String(n).padStart(4, '0')}-${station.toLowerCase()}`
  if (n % 3 === 1) return { key: `${name}.csv`, body: csvOf({ station, atMs, random }), atMs }
  const text = readingsOf({ station, atMs, random }).join('\n')
  if (n % 3 === 2) return { key: `${name}.ndjson.gz`, body: gzipSync(text), atMs }
  return { key: `${name}.ndjson`, body: text, atMs, isTwice: true }
}

type Gauge = { station: string; atMs: number; random: Random }

function readingsOf(gauge: Gauge): string[] {
  return readings(gauge).map((reading) => JSON.stringify(reading))
}

function csvOf(gauge: Gauge): string {
  const rows = readings(gauge).map(({ at, station, levelCm, severity, message }) =>
    [at, station, levelCm, severity, `"${message}"`].join(','),
  )
  return ['at,station,levelCm,severity,message', ...rows].join('\n')
}

function readings({ station, atMs, random }: Gauge): Reading[] {
  return Array.from({ length: READINGS }, (_, n) => {
    const levelCm = Math.round(260 + 180 * Math.sin((n / 12.4) * 2 * Math.PI) + 40 * random())
    const note = NOTES[Math.floor(random() * NOTES.length)]!
    return {
      at: new Date(atMs - (READINGS - n) * HOUR_MS).toISOString(),
      station,
      levelCm,
      severity: levelCm > 440 ? 'warning' : 'info',
      message: `The tide gauge at ${station} read ${levelCm} cm: ${note}.`,
    }
  })
}
