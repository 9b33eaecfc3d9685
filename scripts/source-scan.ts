/**
 * Splits TypeScript source into code and strings, as far as the source rules need it: no parser is
 * among the dependencies, and these rules must not be fooled by a comment or a message.
 *
 * `code` has the length and the lines of the source, with the contents of comments, strings and
 * regular expressions blanked out.
 */
export type StringLiteral = {
  /** Where the opening quote is in the source. */
  start: number
  text: string
}

export type ScannedSource = { code: string; strings: StringLiteral[] }

export type ImportedPath = { specifier: string | undefined; start: number }

export function scanSource(text: string): ScannedSource {
  return new Scanner(text).scan()
}

export function lineAt(text: string, position: number): number {
  let line = 1
  for (let i = text.indexOf('\n'); i !== -1 && i < position; i = text.indexOf('\n', i + 1)) line++
  return line
}

/**
 * What the source refers to as a module: static, dynamic and type imports, re-exports, `require`,
 * `import.meta.resolve` and worker files by `new URL('./x.ts', import.meta.url)`. The specifier is
 * undefined where it is not a plain string.
 */
export function importsOf({ code, strings }: ScannedSource): ImportedPath[] {
  const byStart = new Map(strings.map((string) => [string.start, string.text]))
  const found: ImportedPath[] = []
  for (const match of code.matchAll(IMPORT)) {
    const quote = match.index + match[0].length - 1
    const isUrl = match[0].startsWith('new')
    const specifier = byStart.get(quote)
    // A URL that is not built on import.meta.url is an address and no module.
    if (isUrl && !/^['"`]\s*,\s*import\.meta\.url/.test(afterString(code, quote))) continue
    found.push({ specifier: specifier?.includes(HOLE) ? undefined : specifier, start: match.index })
  }
  return found
}

/** Ends on the opening quote, or on whatever else stands in its place. */
const IMPORT =
  /\b(?:from\s*['"]|import\s*['"]|import\s*\(\s*[^\s]|require\s*\(\s*[^\s]|import\.meta\.resolve\s*\(\s*[^\s]|new\s+URL\s*\(\s*['"`])/g

function afterString(code: string, quote: number): string {
  const close = code.indexOf(code.charAt(quote), quote + 1)
  return code.slice(close, close + 80)
}

/** Stands for an expression inside a template string. */
const HOLE = '\u0000'

const WORD_BEFORE_REGEX = /\b(?:return|typeof|case|in|of|delete|void|throw|new|else|do|await|yield)$/

class Scanner {
  readonly #text: string
  readonly #out: string[] = []
  readonly #strings: StringLiteral[] = []
  #at = 0

  constructor(text: string) {
    this.#text = text
  }

  scan(): ScannedSource {
    this.#code(() => false)
    return { code: this.#out.join(''), strings: this.#strings }
  }

  /** Reads code until `ends` says so (a `}` of a template expression) or the text is over. */
  #code(ends: (char: string) => boolean): void {
    while (this.#at < this.#text.length) {
      const char = this.#text.charAt(this.#at)
      const two = this.#text.slice(this.#at, this.#at + 2)
      if (ends(char)) return
      if (two === '//') this.#blankUntil(this.#indexOf('\n'))
      else if (two === '/*') this.#blankUntil(this.#indexOf('*/', 2) + 2)
      else if (char === "'" || char === '"') this.#quoted(char)
      else if (char === '`') this.#template()
      else if (char === '/' && this.#regexMayStart()) this.#regex()
      else this.#keep()
    }
  }

  #quoted(quote: string): void {
    const start = this.#at
    this.#keep()
    while (this.#at < this.#text.length) {
      const char = this.#text.charAt(this.#at)
      if (char === quote || char === '\n') break
      this.#blank(char === '\\' ? 2 : 1)
    }
    this.#strings.push({ start, text: this.#text.slice(start + 1, this.#at) })
    this.#keep()
  }

  #template(): void {
    const start = this.#at
    let text = ''
    this.#keep()
    while (this.#at < this.#text.length && this.#text.charAt(this.#at) !== '`') {
      if (this.#text.startsWith('${', this.#at)) {
        text += HOLE
        this.#blank(2)
        let depth = 0
        this.#code((char) => {
          if (char === '{') depth++
          return char === '}' && depth-- === 0
        })
        this.#blank(1)
        continue
      }
      const length = this.#text.charAt(this.#at) === '\\' ? 2 : 1
      text += this.#text.slice(this.#at, this.#at + length)
      this.#blank(length)
    }
    this.#strings.push({ start, text })
    this.#keep()
  }

  #regex(): void {
    let inClass = false
    this.#keep()
    while (this.#at < this.#text.length) {
      const char = this.#text.charAt(this.#at)
      if (char === '\n' || (char === '/' && !inClass)) break
      if (char === '[') inClass = true
      else if (char === ']') inClass = false
      this.#blank(char === '\\' ? 2 : 1)
    }
    this.#keep()
  }

  /** A slash divides after a value, and opens a regular expression anywhere else. */
  #regexMayStart(): boolean {
    const before = this.#out.slice(-200).join('').trimEnd()
    return before === '' || /[(,=:[!&|?{;+\-*%~^<>]$/.test(before) || WORD_BEFORE_REGEX.test(before)
  }

  #indexOf(needle: string, offset = 0): number {
    const found = this.#text.indexOf(needle, this.#at + offset)
    return found === -1 ? this.#text.length : found
  }

  #blankUntil(end: number): void {
    this.#blank(end - this.#at)
  }

  #blank(length: number): void {
    for (const char of this.#text.slice(this.#at, this.#at + length).split('')) {
      this.#out.push(char === '\n' ? char : ' ')
    }
    this.#at += length
  }

  #keep(): void {
    this.#out.push(this.#text.charAt(this.#at))
    this.#at++
  }
}
