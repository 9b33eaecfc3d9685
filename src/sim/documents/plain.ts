/** HTML pages, tables of text, and pictures without any. */
import { crc32, deflateSync } from 'node:zlib'
import type { Block } from './docx.ts'
import { escapeXml } from './xml.ts'

export function html({ title = '', blocks }: { title?: string; blocks: readonly Block[] }): Uint8Array {
  const body = blocks.map((block) => {
    if ('heading' in block) return `<h${block.level ?? 1}>${escapeXml(block.heading)}</h${block.level ?? 1}>`
    if ('paragraph' in block) return `<p>${escapeXml(block.paragraph)}</p>`
    const cell = (text: string): string => `<td>${escapeXml(text)}</td>`
    return `<table>${block.table.map((row) => `<tr>${row.map(cell).join('')}</tr>`).join('\n')}</table>`
  })
  return Buffer.from(
    `<!DOCTYPE html>\n<html lang="en">\n<head><meta charset="utf-8"><title>${escapeXml(title)}</title><style>p { margin: 0 }</style></head>\n<body>\n${body.join('\n')}\n<script>console.log('not text')</script>\n</body>\n</html>\n`,
  )
}

export function markdown({ blocks }: { blocks: readonly Block[] }): Uint8Array {
  const text = blocks.map((block) => {
    if ('heading' in block) return `${'#'.repeat(block.level ?? 1)} ${block.heading}`
    if ('paragraph' in block) return block.paragraph
    const [head = [], ...rows] = block.table
    const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`
    return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n')
  })
  return Buffer.from(`${text.join('\n\n')}\n`)
}

export function csv(rows: readonly (readonly string[])[], separator = ','): Uint8Array {
  const quoted = (cell: string): string =>
    /["\r\n]/.test(cell) || cell.includes(separator) ? `"${cell.replaceAll('"', '""')}"` : cell
  return Buffer.from(`${rows.map((row) => row.map(quoted).join(separator)).join('\r\n')}\r\n`)
}

/** One color, `size` by `size`. */
export function png({ size = 1, color = 0 }: { size?: number; color?: number } = {}): Uint8Array {
  const head = Buffer.alloc(13)
  head.writeUInt32BE(size, 0)
  head.writeUInt32BE(size, 4)
  head[8] = 8
  const row = Buffer.alloc(size + 1, color)
  row[0] = 0
  const pixels = deflateSync(Buffer.concat(Array.from({ length: size }, () => row)))
  return Buffer.concat([
    Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'),
    pngPart('IHDR', head),
    pngPart('IDAT', pixels),
    pngPart('IEND', Buffer.alloc(0)),
  ])
}

function pngPart(name: string, data: Uint8Array): Buffer {
  const named = Buffer.concat([Buffer.from(name, 'latin1'), data])
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)]
  length.writeUInt32BE(data.length)
  sum.writeUInt32BE(crc32(named))
  return Buffer.concat([length, named, sum])
}

/** One gray pixel. */
export function jpeg(): Uint8Array {
  return Buffer.from(
    '/9j/4AAQSkZJRgABAQEASABIAAD/2wBDAP//////////////////////////////////////////////////////////////////////////////////////wAALCAABAAEBAREA/8QAFAABAAAAAAAAAAAAAAAAAAAAA//EABQQAQAAAAAAAAAAAAAAAAAAAAD/2gAIAQEAAD8AN//Z',
    'base64',
  )
}
