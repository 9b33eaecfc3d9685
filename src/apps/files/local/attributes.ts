/**
 * What people and programs have attached to a file here, and OneDrive does not keep: extended attributes of users (tags,
 * comments, where it came from) and access lists. They belong to the file at its place, so that a version which takes
 * that place takes them over. What the system attaches by itself, such as rights of a program (`security.*`), belongs
 * to the content and is not taken over.
 *
 * Node has no calls for them: they are those of the C library, on Linux, where this Node can call it.
 */
type Library = NonNullable<ReturnType<typeof openLibrary>>

const KEPT = /^(?:user\..+|system\.posix_acl_access)$/
/** The most that Linux gives of either. */
const LIST_BYTES_MAX = 64 * 1024
const VALUE_BYTES_MAX = 64 * 1024

let library: Library | undefined | null = null

/** As far as the file system of `to` takes them: the content counts more, and what is replaced keeps its own. */
export function copyAttributes(from: string, to: string): void {
  for (const [name, value] of attributesOf(from)) setAttribute(to, name, value)
}

export function attributesOf(path: string): Map<string, Buffer> {
  const found = new Map<string, Buffer>()
  const calls = libraryCalls()
  const list = calls && filled(LIST_BYTES_MAX, (into, bytes) => calls.llistxattr(path, into, bytes))
  if (!calls || !list) return found
  for (const name of list.toString().split('\0')) {
    if (!KEPT.test(name)) continue
    const value = filled(VALUE_BYTES_MAX, (into, bytes) => calls.lgetxattr(path, name, into, bytes))
    if (value) found.set(name, value)
  }
  return found
}

/** False where it cannot be set. */
export function setAttribute(path: string, name: string, value: Buffer): boolean {
  return libraryCalls()?.lsetxattr(path, name, value, BigInt(value.length), 0) === 0
}

function filled(bytesMax: number, fill: (into: Buffer, bytes: bigint) => bigint): Buffer | undefined {
  const into = Buffer.alloc(bytesMax)
  const bytes = Number(fill(into, BigInt(bytesMax)))
  return bytes < 0 ? undefined : into.subarray(0, bytes)
}

function libraryCalls(): Library | undefined {
  if (library === null) library = openLibrary()
  return library
}

function openLibrary() {
  // Older versions of Node do not have it.
  const ffi = process.platform === 'linux' ? process.getBuiltinModule('node:ffi') : undefined
  try {
    return ffi?.dlopen(null, {
      llistxattr: { arguments: ['string', 'buffer', 'uint64'], return: 'int64' },
      lgetxattr: { arguments: ['string', 'string', 'buffer', 'uint64'], return: 'int64' },
      lsetxattr: { arguments: ['string', 'string', 'buffer', 'uint64', 'int32'], return: 'int32' },
    }).functions
  } catch {
    // A Node that was built without it, or a system that has no such calls: files are synced without.
    return undefined
  }
}
