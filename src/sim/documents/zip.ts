/** Zip containers, the same bytes for the same members. */
import { crc32, deflateRawSync } from 'node:zlib'

export type ZipMember = {
  name: string
  content: Uint8Array | string
  /** As large as it says to be, which need not be true. */
  saysBytes?: number
  /** Deflated already, and how many bytes it becomes: for contents too large to be held. */
  deflated?: { inflatedBytes: number; crc: number }
  /** As it is: for contents that do not become smaller. */
  isStored?: boolean
}

/** 1980-01-01 00:00, the earliest that the format knows. */
const DOS_DATE = 0x21
const UTF8_NAME = 0x0800
const DEFLATED = 8
const STORED = 0

export function zip(members: readonly ZipMember[]): Uint8Array {
  const parts: Buffer[] = []
  const directory: Buffer[] = []
  let at = 0
  for (const member of members) {
    const { data, crc, bytes } = packed(member)
    const name = Buffer.from(member.name)
    const fields = Buffer.alloc(26)
    fields.writeUInt16LE(20, 0)
    fields.writeUInt16LE(UTF8_NAME, 2)
    fields.writeUInt16LE(member.isStored ? STORED : DEFLATED, 4)
    fields.writeUInt16LE(DOS_DATE, 8)
    fields.writeUInt32LE(crc, 10)
    fields.writeUInt32LE(data.length, 14)
    // What does not fit is told modulo 2^32, as old programs do.
    fields.writeUInt32LE((member.saysBytes ?? bytes) >>> 0, 18)
    fields.writeUInt16LE(name.length, 22)
    parts.push(Buffer.from('PK\x03\x04', 'latin1'), fields, name, data)
    const tail = Buffer.alloc(14)
    tail.writeUInt32LE(at, 10)
    directory.push(Buffer.from('PK\x01\x02\x14\0', 'latin1'), fields, tail, name)
    at += 30 + name.length + data.length
  }
  const listing = Buffer.concat(directory)
  const end = Buffer.alloc(22)
  end.write('PK\x05\x06', 'latin1')
  end.writeUInt16LE(members.length, 8)
  end.writeUInt16LE(members.length, 10)
  end.writeUInt32LE(listing.length, 12)
  end.writeUInt32LE(at, 16)
  return Buffer.concat([...parts, listing, end])
}

function packed({ content, deflated, isStored }: ZipMember): { data: Buffer; crc: number; bytes: number } {
  const plain = typeof content === 'string' ? Buffer.from(content) : Buffer.from(content)
  if (deflated) return { data: plain, crc: deflated.crc, bytes: deflated.inflatedBytes }
  return { data: isStored ? plain : deflateRawSync(plain), crc: crc32(plain), bytes: plain.length }
}
