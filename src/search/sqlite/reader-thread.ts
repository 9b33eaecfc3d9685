/**
 * Reads the index in a thread with a connection of its own: a search takes some ten milliseconds of work, in which the
 * main thread would answer nobody. One question after another, each in one snapshot of the database.
 */
import { workerData } from 'node:worker_threads'
import { systemClock } from '../../base/clock.ts'
import { SnapshotReader } from '../../ledger/sqlite/driver.ts'
import { serve } from '../../ledger/thread-service.ts'
import { INDEX_READS } from '../query/reads.ts'
import { newReaderMemory, sqliteDialectWith } from './dialect.ts'

/** The upper levels of the trees; what is mapped is the system's to keep or give back. */
const CACHE_KIB = 32 * 1_024
const MAPPED_BYTES = 16 * 1_024 ** 3

export type ReaderThreadData = { file: string }

const { file } = workerData as ReaderThreadData
const reader = new SnapshotReader(file, { cacheKib: CACHE_KIB, mappedBytes: MAPPED_BYTES })

const dialect = sqliteDialectWith(newReaderMemory())

const methods = Object.fromEntries(
  Object.entries(INDEX_READS).map(([name, read]) => [
    name,
    (args: never) => reader.run<unknown>((tx) => read(tx, dialect, args, systemClock)),
  ]),
)

serve({ ...methods, ready: () => true }, () => reader.close())
