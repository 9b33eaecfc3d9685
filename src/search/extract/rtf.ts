/** Rich text: what is shown of it. Pictures, styles, fields' codes and everything else that is not text is left out. */
import { type ExtractLimits, SkipDocument } from './contract.ts'
import { decoderOf, decodeText } from './decode.ts'
import { Sections } from './sections.ts'
import type { TextOutput } from './text-output.ts'

/** Groups whose content is no text of the document. Those that begin with \* are none either. */
const LEFT_OUT = new Set(
  'fonttbl colortbl stylesheet info pict object objdata themedata colorschememapping datastore latentstyles listtable listoverridetable rsidtbl generator xmlnstbl fldinst filetbl revtbl'.split(
    ' ',
  ),
)
const CHARACTERS: Record<string, string> = {
  tab: ' ',
  line: '\n',
  emdash: '—',
  endash: '–',
  lquote: '‘',
  rquote: '’',
  ldblquote: '“',
  rdblquote: '”',
  bullet: '•',
  emspace: ' ',
  enspace: ' ',
  '~': ' ',
  _: '-',
}
const PARAGRAPH_ENDS = new Set(['par', 'sect', 'page', 'row'])
/** How much more than text there may be: pictures are written in letters. */
const CHARS_PER_CHAR_MAX = 16

type Group = { isLeftOut: boolean; fallbackChars: number }

export function readRtf(bytes: Uint8Array, output: TextOutput, limits: ExtractLimits): void {
  const charsMax = output.charsWanted * CHARS_PER_CHAR_MAX
  const { text: source, isCut } = decodeText(bytes, { charsMax, encoding: 'windows-1252' })
  output.isCut ||= isCut
  const codePage = /\\ansicpg(\d{3,5})/.exec(source.slice(0, 500))?.[1]
  new RtfText(output, limits, codePage === undefined ? 'windows-1252' : `windows-${codePage}`).read(source)
}

class RtfText {
  readonly #sections: Sections
  readonly #depthMax: number
  readonly #decoder: TextDecoder
  readonly #groups: Group[] = []
  #group: Group = { isLeftOut: false, fallbackChars: 1 }
  #text = ''
  #level: number | undefined
  /** Characters that stand in for one that was given by its number, and are not read. */
  #skip = 0
  #bytes: number[] = []

  constructor(output: TextOutput, limits: ExtractLimits, encoding: string) {
    this.#sections = new Sections(output)
    this.#depthMax = limits.depthMax
    this.#decoder = decoderOf(encoding)
  }

  read(source: string): void {
    const token = /\\([a-z]{1,32})(-?\d{1,10})? ?|\\'([0-9a-f]{2})|\\([^a-z])|([{}])|[\r\n]+|([^\\{}\r\n]+)/gi
    for (let match = token.exec(source); match; match = token.exec(source)) {
      const [, word, number, code, symbol, brace, text] = match
      if (code !== undefined) this.#writeByte(Number.parseInt(code, 16))
      else {
        this.#writeBytes()
        if (word !== undefined) this.#control(word, number === undefined ? undefined : Number(number))
        else if (symbol !== undefined) this.#symbol(symbol)
        else if (brace === '{') this.#open()
        else if (brace === '}') this.#close()
        else if (text !== undefined) this.#write(text)
      }
    }
    this.#writeBytes()
    this.#endParagraph()
    this.#sections.end()
  }

  #open(): void {
    if (this.#groups.length >= this.#depthMax) {
      throw new SkipDocument('too-deep', `its groups are nested more than ${this.#depthMax} deep`)
    }
    this.#groups.push(this.#group)
    this.#group = { ...this.#group }
    this.#skip = 0
  }

  #close(): void {
    this.#group = this.#groups.pop() ?? this.#group
    this.#skip = 0
  }

  #control(word: string, number: number | undefined): void {
    if (LEFT_OUT.has(word)) this.#group.isLeftOut = true
    else if (PARAGRAPH_ENDS.has(word)) this.#endParagraph()
    else if (word === 'cell') this.#write(' | ')
    else if (word === 'pard') this.#level = undefined
    else if (word === 'outlinelevel' && number !== undefined && number >= 0 && number < 9)
      this.#level = number + 1
    else if (word === 'uc') this.#group.fallbackChars = Math.max(0, number ?? 1)
    else if (word === 'u' && number !== undefined) {
      this.#skip = 0
      this.#write(String.fromCharCode(number & 0xffff))
      this.#skip = this.#group.fallbackChars
    } else if (CHARACTERS[word] !== undefined) this.#write(CHARACTERS[word])
    else if (word === 'v' && number !== 0) this.#group.isLeftOut = true
  }

  #symbol(symbol: string): void {
    if (symbol === '*') this.#group.isLeftOut = true
    else if (symbol === '\\' || symbol === '{' || symbol === '}') this.#write(symbol)
    else if (symbol === '\n' || symbol === '\r') this.#endParagraph()
    else if (CHARACTERS[symbol] !== undefined) this.#write(CHARACTERS[symbol])
  }

  #writeByte(byte: number): void {
    if (this.#skip > 0) this.#skip -= 1
    else this.#bytes.push(byte)
  }

  #writeBytes(): void {
    if (this.#bytes.length === 0) return
    const text = this.#decoder.decode(Uint8Array.from(this.#bytes))
    this.#bytes = []
    this.#write(text)
  }

  #write(text: string): void {
    const skipped = Math.min(this.#skip, text.length)
    this.#skip -= skipped
    if (!this.#group.isLeftOut) this.#text += text.slice(skipped)
  }

  #endParagraph(): void {
    const text = this.#text.trim().replace(/(?: \|)+$/, '')
    this.#text = ''
    if (text === '') return
    if (this.#level === undefined) this.#sections.paragraph(text)
    else this.#sections.heading(this.#level, text)
  }
}
