/** What was fetched how often, file by file: the proof that each document came once. */
export type FetchCounts = {
  /** Whole or partial downloads by file id; a part of the bytes counts as a fetch only where it begins at the first. */
  downloads: Record<string, number>
  exports: Record<string, number>
}

export class Counts {
  #downloads = new Map<string, number>()
  #exports = new Map<string, number>()

  noteDownload(id: string): void {
    this.#downloads.set(id, (this.#downloads.get(id) ?? 0) + 1)
  }

  noteExport(id: string): void {
    this.#exports.set(id, (this.#exports.get(id) ?? 0) + 1)
  }

  /** Both together. */
  fetches(id: string): number {
    return (this.#downloads.get(id) ?? 0) + (this.#exports.get(id) ?? 0)
  }

  list(): FetchCounts {
    return { downloads: Object.fromEntries(this.#downloads), exports: Object.fromEntries(this.#exports) }
  }

  reset(): void {
    this.#downloads.clear()
    this.#exports.clear()
  }
}
