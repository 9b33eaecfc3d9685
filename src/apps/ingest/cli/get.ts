/** `tidemark ingest get`: the bytes of an object, wherever they are now. */
import { createHash } from 'node:crypto'
import { open, rm } from 'node:fs/promises'
import type { CliContext } from '../../../app/command.ts'
import { TidemarkError, UsageError } from '../../../base/errors.ts'
import { formatBytes } from '../../../base/format.ts'
import { hostOf, openBytes } from '../object-bytes.ts'
import type { IngestRuntime } from '../runtime.ts'
import type { ShardRow } from '../store/rows.ts'
import { findShard, withIngest } from './context.ts'

export async function getObject(
  context: CliContext,
  { name, object, file }: { name: string; object: string; file: string },
): Promise<void> {
  const { output } = context
  await withIngest(context, async (opened) => {
    const row = await findShard(opened, name, object)
    const { sizeBytes, sha256 } = await write(opened, row, file)
    if (output.json)
      output.value({ pipeline: name, uri: row.uri, version: row.version, file, sizeBytes, sha256 })
    else output.line(`${row.uri}: ${formatBytes(sizeBytes)} written to ${file}`)
  })
}

async function write(
  { ingest }: IngestRuntime,
  row: ShardRow,
  file: string,
): Promise<{ sizeBytes: number; sha256: string }> {
  const body = await (await openBytes(ingest.kinds, row, new AbortController().signal))(0)
  const target = await open(file, 'wx').catch((thrown: NodeJS.ErrnoException) => {
    const why = thrown.code === 'EEXIST' ? 'is there already' : `cannot be written (${thrown.code})`
    throw new UsageError(`The file ${file} ${why}.`, { code: 'file', cause: thrown })
  })
  const hash = createHash('sha256')
  let sizeBytes = 0
  try {
    for await (const chunk of body.bytes) {
      hash.update(chunk)
      sizeBytes += chunk.length
      await target.writeFile(chunk)
    }
    const sha256 = hash.digest('hex')
    if (hostOf(row.disposed_to) !== undefined && sha256 !== row.disposed_version) throw damaged(row)
    await target.sync()
    return { sizeBytes, sha256 }
  } catch (thrown) {
    await rm(file, { force: true })
    throw thrown
  } finally {
    await target.close()
  }
}

function damaged({ uri }: ShardRow): TidemarkError {
  return new TidemarkError(`The copy of ${uri} is damaged: its bytes are others than those that were kept.`, {
    kind: 'permanent',
    code: 'copy-damaged',
  })
}
