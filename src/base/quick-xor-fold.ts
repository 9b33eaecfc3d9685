/**
 * The inner loop of QuickXorHash: XORs bytes into 160 sums, byte i into the sum (place + i) mod 160. Two ways that do
 * the same: with 128-bit words in WebAssembly, and with 32-bit words where that cannot be had, on processors
 * without such instructions.
 *
 * Measured on chunks of 1 MiB and of 64 KiB, as multiples of sha256 of node:crypto in the same run: byte by byte 0.5,
 * 64-bit words in a BigUint64Array 0.6, 32-bit words in one loop over the 40 of a block 1.4, `foldWords` 4 and 4,
 * `foldSimd` 17 and 15 with the copy that it needs. zlib's crc32 has 3.
 */

export type Fold = (sums: Uint8Array, place: number, bytes: Uint8Array) => void

export const PERIOD_BYTES = 160

const PERIOD_WORDS = PERIOD_BYTES / 4
/** Below it, finding the words costs more than they save. */
const WORDS_FROM_BYTES = 4 * PERIOD_BYTES
/** Blocks that stay in the first cache for all five passes. */
const PASS_WORDS = 100 * PERIOD_WORDS

/** Five passes with eight sums each: as many as stay in registers. */
export function foldWords(sums: Uint8Array, place: number, bytes: Uint8Array): void {
  if (bytes.length < WORDS_FROM_BYTES) {
    foldBytes(sums, place, bytes, 0, bytes.length)
    return
  }
  // Words are read where memory has them: a few bytes come before the first.
  const head = (4 - (bytes.byteOffset % 4)) % 4
  foldBytes(sums, place, bytes, 0, head)
  const blocks = Math.floor((bytes.length - head) / PERIOD_BYTES)
  const words = new Int32Array(bytes.buffer, bytes.byteOffset + head, blocks * PERIOD_WORDS)
  const block = new Int32Array(PERIOD_WORDS)
  for (let start = 0; start < words.length; start += PASS_WORDS) {
    addWords(block, words, start, Math.min(start + PASS_WORDS, words.length))
  }
  // One block in place of all: whole blocks turn the places by none.
  const next = (place + head) % PERIOD_BYTES
  foldBytes(sums, next, new Uint8Array(block.buffer), 0, PERIOD_BYTES)
  foldBytes(sums, next, bytes, head + blocks * PERIOD_BYTES, bytes.length)
}

function foldBytes(sums: Uint8Array, place: number, bytes: Uint8Array, start: number, end: number): void {
  for (let i = start, at = place; i < end; i++) {
    sums[at] = sums[at]! ^ bytes[i]!
    if (++at === PERIOD_BYTES) at = 0
  }
}

function addWords(block: Int32Array, words: Int32Array, start: number, end: number): void {
  for (let column = 0; column < PERIOD_WORDS; column += 8) {
    let a = block[column]!
    let b = block[column + 1]!
    let c = block[column + 2]!
    let d = block[column + 3]!
    let e = block[column + 4]!
    let f = block[column + 5]!
    let g = block[column + 6]!
    let h = block[column + 7]!
    for (let at = start + column; at < end; at += PERIOD_WORDS) {
      a ^= words[at]!
      b ^= words[at + 1]!
      c ^= words[at + 2]!
      d ^= words[at + 3]!
      e ^= words[at + 4]!
      f ^= words[at + 5]!
      g ^= words[at + 6]!
      h ^= words[at + 7]!
    }
    block[column] = a
    block[column + 1] = b
    block[column + 2] = c
    block[column + 3] = d
    block[column + 4] = e
    block[column + 5] = f
    block[column + 6] = g
    block[column + 7] = h
  }
}

const VECTORS = PERIOD_BYTES / 16
/** In the module's memory: the sums, then the bytes, which begin at their place in a block. */
const BYTES_AT = 256
const PIECE_BYTES = 409 * PERIOD_BYTES
const MEMORY_PAGES = 2

/** What is used of WebAssembly, with the exports of our module. */
type Wasm = {
  validate(code: Uint8Array): boolean
  Module: new (code: Uint8Array) => object
  Instance: new (
    module: object,
  ) => { exports: { m: { buffer: ArrayBuffer }; f: (at: number, end: number) => void } }
}

/** Undefined where there is no WebAssembly with SIMD. */
export const foldSimd: Fold | undefined = createFoldSimd()

function createFoldSimd(): Fold | undefined {
  const { WebAssembly: wasm } = globalThis as unknown as { WebAssembly?: Wasm }
  const code = assemble()
  if (!wasm?.validate(code)) return undefined
  const { m, f: fold } = new wasm.Instance(new wasm.Module(code)).exports
  const memory = new Uint8Array(m.buffer)
  return (sums, place, bytes) => {
    memory.set(sums)
    for (let done = 0, before = place; done < bytes.length; ) {
      const count = Math.min(bytes.length - done, PIECE_BYTES - before)
      const end = BYTES_AT + Math.ceil((before + count) / PERIOD_BYTES) * PERIOD_BYTES
      // Zeros before and behind it change no sum.
      memory.fill(0, BYTES_AT, BYTES_AT + before)
      memory.set(
        done === 0 && count === bytes.length ? bytes : bytes.subarray(done, done + count),
        BYTES_AT + before,
      )
      memory.fill(0, BYTES_AT + before + count, end)
      fold(BYTES_AT, end)
      done += count
      before = (before + count) % PERIOD_BYTES
    }
    sums.set(memory.subarray(0, PERIOD_BYTES))
  }
}

/**
 * (func (export "f") (param $at i32) (param $end i32) (local v128 × 10)
 *   ten times: (local.set $v (v128.load (i32.const 0)))
 *   (loop
 *     ten times: (local.set $v (v128.xor (local.get $v) (v128.load (local.get $at))))
 *     (br_if 0 (i32.lt_u (local.tee $at (i32.add (local.get $at) (i32.const 160))) (local.get $end))))
 *   ten times: (v128.store (i32.const 0) (local.get $v)))
 * with the memory exported as "m". It is called with one block at least.
 */
function assemble(): Uint8Array<ArrayBuffer> {
  const [I32, V128, LOCAL_GET, LOCAL_SET, LOCAL_TEE, I32_CONST] = [0x7f, 0x7b, 0x20, 0x21, 0x22, 0x41]
  const [LOAD, STORE, XOR] = [
    [0xfd, 0],
    [0xfd, 11],
    [0xfd, 0x51],
  ]
  const [AT, END] = [0, 1]
  const each = (code: (local: number, place: number[]) => number[]): number[] =>
    // Loads and stores say how they are aligned (4: to 16 bytes) and their offset.
    Array.from({ length: VECTORS }, (_, i) => code(2 + i, [4, ...unsigned(i * 16)])).flat()
  const body = [
    ...[1, VECTORS, V128],
    ...each((v, place) => [I32_CONST, 0, ...LOAD, ...place, LOCAL_SET, v]),
    ...[0x03, 0x40],
    ...each((v, place) => [LOCAL_GET, v, LOCAL_GET, AT, ...LOAD, ...place, ...XOR, LOCAL_SET, v]),
    ...[LOCAL_GET, AT, I32_CONST, ...signed(PERIOD_BYTES), 0x6a, LOCAL_TEE, AT],
    ...[LOCAL_GET, END, 0x49, 0x0d, 0, 0x0b],
    ...each((v, place) => [I32_CONST, 0, LOCAL_GET, v, ...STORE, ...place]),
    0x0b,
  ]
  const section = (id: number, content: number[]): number[] => [id, ...unsigned(content.length), ...content]
  const name = (text: string): number[] => [text.length, ...Buffer.from(text)]
  return Uint8Array.from([
    ...[0, ...Buffer.from('asm'), 1, 0, 0, 0],
    ...section(1, [1, 0x60, 2, I32, I32, 0]),
    ...section(3, [1, 0]),
    ...section(5, [1, 0, MEMORY_PAGES]),
    ...section(7, [2, ...name('m'), 2, 0, ...name('f'), 0, 0]),
    ...section(10, [1, ...unsigned(body.length), ...body]),
  ])
}

/** LEB128. */
function unsigned(value: number): number[] {
  return value < 0x80 ? [value] : [(value & 0x7f) | 0x80, ...unsigned(value >>> 7)]
}

function signed(value: number): number[] {
  return value < 0x40 ? [value] : [(value & 0x7f) | 0x80, ...signed(value >> 7)]
}
