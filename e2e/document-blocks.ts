/** Code in documents: what stands between ``` fences, and in which chapter. */
import { readFileSync } from 'node:fs'

export type Block = { language: string; text: string; line: number }
export type Chapter = { title: string; blocks: Block[] }

const FENCE = /^```(\w*)$/

export function readChapters(path: string): Chapter[] {
  const chapters: Chapter[] = [{ title: '', blocks: [] }]
  let open: Block | undefined
  for (const [index, line] of readFileSync(path, 'utf8').split('\n').entries()) {
    const fence = FENCE.exec(line)
    if (open && fence) open = undefined
    else if (open) open.text += `${line}\n`
    else if (fence) {
      open = { language: fence[1]!, text: '', line: index + 1 }
      chapters.at(-1)!.blocks.push(open)
    } else if (line.startsWith('## ')) chapters.push({ title: line.slice(3), blocks: [] })
  }
  if (open) throw new Error(`${path}:${open.line}: this block has no end`)
  return chapters
}

/** The blocks of one language, joined: pieces of one program. */
export function blocksText(chapter: Chapter, language: string): string {
  return chapter.blocks
    .filter((block) => block.language === language)
    .map((block) => block.text)
    .join('\n')
}

/** The commands of all shell blocks, one per line, without comments. */
export function commandsOf(chapters: readonly Chapter[]): string[] {
  return chapters.flatMap((chapter) =>
    blocksText(chapter, 'sh')
      .split('\n')
      .map((line) => line.replace(/(?:^|\s)#.*$/, '').trim())
      .filter((line) => line !== ''),
  )
}
