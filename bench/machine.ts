/** What the numbers were measured on. */
import { statfsSync } from 'node:fs'
import { arch, cpus, platform, release, tmpdir, totalmem } from 'node:os'

const FILE_SYSTEMS: Record<number, string> = {
  61267: 'ext4',
  16914836: 'tmpfs (memory: commits cost nothing here)',
  1481003842: 'xfs',
  2435016766: 'btrfs',
  2035054128: 'overlayfs',
}

export function describeMachine(): string[] {
  const processors = cpus()
  return [
    `${processors.length} cores (${processors[0]?.model.trim() ?? 'unknown'}), ${gigabytes(totalmem())} GB memory, ${platform()} ${release()} ${arch()}`,
    `Node ${process.versions.node}, SQLite ${process.versions.sqlite} (node:sqlite)`,
    `databases on ${fileSystem(benchFolder())}`,
  ]
}

/** Where the databases go: set TIDEMARK_BENCH_DIR to measure another disk. */
export function benchFolder(): string {
  return process.env.TIDEMARK_BENCH_DIR ?? tmpdir()
}

function fileSystem(folder: string): string {
  const { type } = statfsSync(folder)
  return FILE_SYSTEMS[type] ?? `a file system of type 0x${type.toString(16)}`
}

function gigabytes(bytes: number): string {
  return (bytes / 2 ** 30).toFixed(0)
}
