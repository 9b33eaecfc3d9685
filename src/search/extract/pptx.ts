/** Presentations: a part for each slide under its title, and one for the notes of its speaker. */
import type { ExtractLimits } from './contract.ts'
import type { Attributes } from './markup.ts'
import { mainMember, readProperties, relationsOf } from './office-container.ts'
import type { TextOutput } from './text-output.ts'
import { ZipReader } from './zip.ts'

const SLIDES_MAX = 5_000
/** What stands on each slide again. */
const REPEATED = new Set(['sldNum', 'dt', 'ftr', 'hdr'])

export async function readPptx(bytes: Uint8Array, output: TextOutput, limits: ExtractLimits): Promise<void> {
  const zip = new ZipReader(bytes, limits)
  const main = await mainMember(zip)
  await readProperties(zip, 'docProps/core.xml', output)
  const related = new Map((await relationsOf(zip, main)).map(({ id, target }) => [id, target]))
  let slide = 0
  for (const id of await slideIds(zip, main)) {
    const target = related.get(id)
    slide += 1
    if (target === undefined || !zip.has(target)) continue
    if (slide > SLIDES_MAX) {
      output.isCut = true
      return
    }
    const shown = new SlideText(output.charsWanted)
    await zip.xml(target, shown)
    const headings = shown.title === '' ? [] : [shown.title]
    const place = { kind: 'slide', slide } as const
    output.add({ text: shown.content, headings, place })
    const notes = (await relationsOf(zip, target)).find(({ type }) => type === 'notesSlide')
    if (!notes) continue
    const said = new SlideText(output.charsWanted)
    await zip.xml(notes.target, said)
    output.add({ text: said.content, headings, place })
  }
}

/** In the order in which they are shown. */
async function slideIds(zip: ZipReader, member: string): Promise<string[]> {
  const ids: string[] = []
  await zip.xml(member, {
    open(name, attributes) {
      if (name !== 'sldId' || ids.length > SLIDES_MAX) return
      // Beside its own id, which is a number.
      const key = Object.keys(attributes).find((name) => name.endsWith(':id'))
      ids.push(key === undefined ? '' : attributes[key]!)
    },
    close() {},
    text() {},
  })
  return ids
}

class SlideText {
  title = ''
  content = ''
  readonly #charsMax: number
  #line = ''
  #cells: string[] | undefined
  #placeholder = ''
  #isText = false
  #leftOutDepth = 0

  constructor(charsMax: number) {
    this.#charsMax = charsMax
  }

  open = (name: string, attributes: Attributes): void => {
    if (name === 'Fallback') this.#leftOutDepth += 1
    if (name === 'sp') this.#placeholder = ''
    if (name === 'ph') this.#placeholder = attributes.type ?? 'body'
    if (name === 'tr') this.#cells = []
    if (name === 'br') this.#line += ' '
    if (name === 't') this.#isText = true
  }

  close = (name: string): void => {
    if (name === 'Fallback') this.#leftOutDepth -= 1
    if (name === 't') this.#isText = false
    if (name === 'p') this.#endLine()
    if (name !== 'tr' || !this.#cells) return
    this.#write(this.#cells.join(' | '))
    this.#cells = undefined
  }

  text = (text: string): void => {
    if (!this.#isText || this.#leftOutDepth > 0 || REPEATED.has(this.#placeholder)) return
    // More than is taken is not held.
    if (this.content.length + this.#line.length <= this.#charsMax) this.#line += text
  }

  #endLine(): void {
    const line = this.#line.trim()
    this.#line = ''
    if (line === '') return
    if (this.#cells) this.#cells.push(line)
    else {
      if (/title$/i.test(this.#placeholder)) this.title += this.title === '' ? line : ` ${line}`
      this.#write(line)
    }
  }

  #write(line: string): void {
    this.content += `${line}\n`
  }
}
