/**
 * Reads server-sent events from a stream of text. The browser's EventSource would do, were it not that it tells
 * neither a refusal from a drop nor a silent connection from a dead one, and cannot resume after a refusal.
 */
export type ServerEvent = { id: string; type: string; data: string }

/** A server that never ends a line must not fill the memory. */
const LINE_CHARS_MAX = 16_000_000

export class EventParser {
  #rest = ''
  #data: string[] = []
  #type = ''
  #id = ''

  /** The events that are complete with this text; comments and unknown fields are left out. */
  push(text: string): ServerEvent[] {
    const events: ServerEvent[] = []
    this.#rest += text
    let from = 0
    for (;;) {
      const end = this.#rest.indexOf('\n', from)
      if (end < 0) break
      const line = this.#rest.slice(from, this.#rest[end - 1] === '\r' ? end - 1 : end)
      from = end + 1
      const event = this.#line(line)
      if (event) events.push(event)
    }
    this.#rest = this.#rest.slice(from)
    if (this.#rest.length > LINE_CHARS_MAX) throw new Error('The server sent an event that is too large.')
    return events
  }

  #line(line: string): ServerEvent | undefined {
    if (line === '') return this.#end()
    const colon = line.indexOf(':')
    if (colon === 0) return undefined
    const field = colon < 0 ? line : line.slice(0, colon)
    const raw = colon < 0 ? '' : line.slice(colon + 1)
    const value = raw.startsWith(' ') ? raw.slice(1) : raw
    if (field === 'data') this.#data.push(value)
    else if (field === 'event') this.#type = value
    else if (field === 'id' && !value.includes('\0')) this.#id = value
    return undefined
  }

  #end(): ServerEvent | undefined {
    const event = { id: this.#id, type: this.#type || 'message', data: this.#data.join('\n') }
    const hasData = this.#data.length > 0
    this.#data = []
    this.#type = ''
    return hasData ? event : undefined
  }
}
