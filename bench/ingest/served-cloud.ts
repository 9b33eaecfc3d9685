/** The simulated cloud in a process of its own: a bucket with what is asked for, announced in a queue. */
import { startSim } from '../../src/sim/start.ts'

export type CloudOrder = {
  do: 'cloud'
  objects: number
  /** In each of the objects. */
  records: number
  /** One object more, of so many bytes that nobody holds. */
  huge?: { sizeBytes: number; recordBytes: number }
}

export type CloudAt = {
  s3Url: string
  sqsUrl: string
  queueUrl: string
  region: string
  accessKeyId: string
  secretAccessKey: string
  bytes: number
}

export const BUCKET = 'bench'
const QUEUE = 'bench'

export async function serveCloud({ objects, records, huge }: CloudOrder): Promise<CloudAt> {
  const sim = await startSim({
    sqs: { queues: [QUEUE] },
    s3: { buckets: [{ name: BUCKET, notify: [{ queue: QUEUE, envelope: 's3' }] }] },
  })
  let bytes = 0
  for (let n = 0; n < objects; n++) {
    const text = objectText(n, records)
    bytes += text.length
    sim.s3.store.put(BUCKET, `logs/${String(n).padStart(7, '0')}.ndjson`, text)
  }
  if (huge) sim.s3.store.putSynthetic(BUCKET, 'huge.ndjson', hugeObject(huge))
  process.on('SIGTERM', () => {
    void sim.close().then(() => process.exit(0))
  })
  const { region, accessKeyId, secretAccessKey } = sim.s3.account
  return {
    s3Url: sim.s3.baseUrl,
    sqsUrl: sim.sqs.baseUrl,
    queueUrl: sim.sqs.queueUrl(QUEUE),
    region,
    accessKeyId,
    secretAccessKey,
    bytes,
  }
}

const WORDS =
  'tide gauge harbour quay pilot vessel ebb flood spring neap buoy channel berth keel lantern'.split(' ')

/** Some 300 bytes, of words that repeat as those of logs do. */
export function recordOf(object: number, at: number): Readonly<Record<string, unknown>> {
  const word = (n: number): string => WORDS[(object * 7 + at * 3 + n * 5) % WORDS.length]!
  const message = Array.from({ length: 25 }, (_, n) => word(n)).join(' ')
  return {
    message: `${message} ${object}-${at}`,
    level: at % 10 === 0 ? 'warning' : 'info',
    station: word(at),
    at,
  }
}

function objectText(object: number, records: number): string {
  return Array.from({ length: records }, (_, at) => `${JSON.stringify(recordOf(object, at))}\n`).join('')
}

/** Lines of the same length, each known by where it stands. */
function hugeObject({ sizeBytes, recordBytes }: { sizeBytes: number; recordBytes: number }) {
  const line = Buffer.alloc(recordBytes, ' ')
  line.write('{"message":"')
  line.fill('tide gauge read at the quay ', 12, 4_000)
  line.write('","filler":"', 4_000)
  line.fill('x', 4_012, recordBytes - 3)
  line.write('"}\n', recordBytes - 3)
  return {
    sizeBytes: Math.floor(sizeBytes / recordBytes) * recordBytes,
    bytesAt(from: number, to: number): Uint8Array {
      const bytes = Buffer.allocUnsafe(to - from)
      for (let at = from; at < to; ) {
        const start = at % recordBytes
        const end = Math.min(recordBytes, start + to - at)
        line.copy(bytes, at - from, start, end)
        at += end - start
      }
      return bytes
    },
  }
}
