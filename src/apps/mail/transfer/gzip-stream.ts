/** Unpacks what may be a trap: a small file that becomes larger than any disk. */
import { createGunzip } from 'node:zlib'
import { TidemarkError } from '../../../base/errors.ts'

/** Mail shrinks to a third, text that repeats itself to a fiftieth; gzip can do a thousandth. */
const RATIO_MAX = 200
/** Small files may be anything. */
const BYTES_FREE = 16 * 1024 * 1024

/** Throws where the bytes are damaged, or become too many. */
export async function* gunzipped(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer> {
  const gunzip = createGunzip()
  let [taken, given] = [0, 0]
  const feeding = feed(chunks, gunzip, (bytes) => {
    taken += bytes
  })
  try {
    for await (const chunk of gunzip as AsyncIterable<Buffer>) {
      given += chunk.length
      if (given > BYTES_FREE && given > taken * RATIO_MAX) {
        throw new TidemarkError(`it is more than ${RATIO_MAX} times as large when it is unpacked`, {
          kind: 'permanent',
        })
      }
      yield chunk
    }
    await feeding
  } finally {
    gunzip.destroy()
  }
}

async function feed(
  chunks: AsyncIterable<Uint8Array>,
  gunzip: ReturnType<typeof createGunzip>,
  onBytes: (bytes: number) => void,
): Promise<void> {
  try {
    for await (const chunk of chunks) {
      if (gunzip.destroyed) return
      onBytes(chunk.length)
      if (!gunzip.write(chunk)) {
        await new Promise<void>((resolve) => {
          gunzip.once('drain', resolve)
          gunzip.once('close', resolve)
        })
      }
    }
    gunzip.end()
  } catch (thrown) {
    gunzip.destroy(thrown instanceof Error ? thrown : new Error(String(thrown)))
  }
}
