/** The headings that stand above the place where a reader is: a heading ends all that are not above its level. */

export class HeadingPath {
  #open: { level: number; text: string }[] = []

  get headings(): string[] {
    return this.#open.map(({ text }) => text)
  }

  enter(level: number, text: string): void {
    this.#open = this.#open.filter((heading) => heading.level < level)
    if (text.trim() !== '') this.#open.push({ level, text })
  }
}
