/** Objects of another service: a bucket, a folder, addresses. Every client of one implements this, and is held to it by one suite. */

export interface ObjectStore {
  /** Of which it reads: `s3://bucket/`. */
  readonly scheme: 's3' | 'gs' | 'file' | 'https'
  /**
   * The bytes from `fromByte` on. Refuses with a TidemarkError: `gone` where the object or that version is not there
   * any more (code `object-missing` or `object-replaced`), `permanent` with code `object-denied` where it may not be
   * read or `range` where it has no such byte, `transient` and `throttled` as usual. Bytes that end too early are a
   * `transient` error. A body is read to its end, left by `return`, or given up by the signal.
   */
  read(
    uri: string,
    options: { version: ObjectVersion | null; fromByte: number; signal: AbortSignal },
  ): Promise<ObjectBody>
  head(uri: string, signal: AbortSignal): Promise<ObjectHead | undefined>
  /**
   * In the order of the bytes of keys. `prefix` is an address, `s3://bucket/logs/`; `after` is `next` of an earlier page,
   * the key of its last object.
   */
  list(options: {
    prefix: string
    after: string | null
    max: number
    signal: AbortSignal
  }): Promise<ObjectPage>
  /** After success, by choice. Each re-checks that it is still this version, where the store can. */
  tag?(uri: string, version: ObjectVersion, tags: Readonly<Record<string, string>>): Promise<void>
  /** Within the store, without its bytes coming here. Refuses with code `target-exists` where something is there. */
  copy?(uri: string, version: ObjectVersion, to: string): Promise<void>
  /** Where versions are kept, the object is hidden, and the version stays. */
  remove?(uri: string, version: ObjectVersion): Promise<void>
  close(): Promise<void>
}

export type ObjectBody = ObjectHead & { bytes: AsyncIterable<Uint8Array> }

export type ObjectHead = {
  version: ObjectVersion
  sizeBytes: number | null
  modifiedAtMs: number | null
  contentType: string | null
  contentEncoding: string | null
  /** Of its bytes, where the store tells one that is the same for all copies. */
  hash?: string
}

export type ObjectPage = {
  objects: readonly {
    uri: string
    version: ObjectVersion
    /** Null where it cannot be read. */
    sizeBytes: number | null
    modifiedAtMs: number | null
  }[]
  /** Where the next page begins; null at the end. */
  next: string | null
}

export type ObjectVersion = {
  /** An etag without quotes, a generation, or size and times of a file. Part of the shard's identity. */
  id: string
  /** Asks the store for exactly this one, where it keeps versions. */
  versionId?: string
  /** Orders events of one key; see compareSequencers. */
  sequencer?: string
}
