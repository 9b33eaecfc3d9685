/** Markdown: a part for each section, with the path of its headings. The text stays as it is written, line by line. */
import { HeadingPath } from './heading-path.ts'
import type { TextOutput } from './text-output.ts'

const ATX_HEADING = /^ {0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*$/
const SETEXT_LINE = /^ {0,3}(=+|-+)[ \t]*$/
const FENCE = /^ {0,3}(`{3,}|~{3,})/
const FRONT_MATTER_LINES_MAX = 200
/** A heading is one line: longer ones are text that begins with a number sign. */
const HEADING_CHARS_MAX = 1_000

export function readMarkdown(bytes: Uint8Array, output: TextOutput): void {
  const text = output.decode(bytes)
  const lines = text.split(/\r\n?|\n/)
  const path = new HeadingPath()
  let fence: string | undefined
  let from = 0
  const endPart = (to: number): void => {
    const place = { kind: 'lines', first: from + 1, last: to } as const
    output.add({ text: lines.slice(from, to).join('\n'), headings: path.headings, place })
    from = to
  }
  for (let at = readFrontMatter(lines, output); at < lines.length; at++) {
    const line = lines[at]!
    const mark = FENCE.exec(line)?.[1]
    if (fence !== undefined) {
      if (mark?.startsWith(fence) && line.trim() === mark) fence = undefined
      continue
    }
    if (mark !== undefined) {
      fence = mark
      continue
    }
    const heading = headingAt(lines, at)
    if (!heading) continue
    endPart(heading.from)
    path.enter(heading.level, heading.text)
    if (heading.level === 1) output.setTitle(heading.text)
  }
  endPart(lines.length)
}

type Heading = { level: number; text: string; from: number }

function headingAt(lines: string[], at: number): Heading | undefined {
  const line = lines[at]!
  if (line.length > HEADING_CHARS_MAX) return undefined
  const atx = ATX_HEADING.exec(line)
  if (atx) return { level: atx[1]!.length, text: withoutMarkup(atx[2] ?? ''), from: at }
  const above = lines[at - 1]
  const setext = SETEXT_LINE.exec(line)?.[1]
  if (setext === undefined || !above?.trim() || above.length > HEADING_CHARS_MAX) return undefined
  // Under a list, a quote or a table such a line is something else.
  if (/^\s*(?:[-*+>|]|\d+[.)]|#)/.test(above) || /^ {4}/.test(above)) return undefined
  return { level: setext[0] === '=' ? 1 : 2, text: withoutMarkup(above), from: at - 1 }
}

/** Gives the line after it. */
function readFrontMatter(lines: string[], output: TextOutput): number {
  if (lines[0]?.replace(/^\ufeff/, '').trimEnd() !== '---') return 0
  const end = lines
    .slice(0, FRONT_MATTER_LINES_MAX)
    .findIndex((line, at) => at > 0 && /^(?:---|\.\.\.)\s*$/.test(line))
  if (end < 0) return 0
  for (const line of lines.slice(1, end)) {
    const [, name, value] = /^(title|lang|language):[ \t]*(.*)$/i.exec(line) ?? []
    if (name === undefined || value === undefined) continue
    const bare = value.trim().replace(/^(["'])(.*)\1$/, '$2')
    if (name.toLowerCase() === 'title') output.setTitle(bare)
    else output.setLanguage(bare)
  }
  return end + 1
}

function withoutMarkup(text: string): string {
  return text
    .replace(/!?\[([^\]]{0,300})\]\([^)]{0,1000}\)/g, '$1')
    .replace(/[*`]+/g, '')
    .replace(/(?<=^|\s)_+|_+(?=\s|$)/g, '')
    .trim()
}
