/**
 * SQL with `?` on PostgreSQL. A text is translated to `$1 … $n` once; one that comes back often is prepared
 * under a name, so that the server parses and plans it once per connection. One that takes a list is not: a plan that was
 * made while a table was small reads all of it when it is large, until the server has counted it anew, and planning
 * costs little beside many rows.
 */

/** A prepared statement costs memory on every connection; lists of varying length would each be a new text. */
const NAMES_MAX = 256
const NAMED_PARAMS_MAX = 32
const USES_BEFORE_NAMED = 4
const TEXTS_MAX = 2_000
/** A list of rows or texts as JSON. */
const LIST = /\bjsonb?_(?:to_recordset|array_elements)/

export type Statement = { text: string; name: string | undefined }

type Entry = Statement & { uses: number; nameable: boolean }

export class StatementBook {
  readonly #entries = new Map<string, Entry>()
  #names = 0

  find(sql: string): Statement {
    let entry = this.#entries.get(sql)
    if (!entry) {
      // Names are kept by the connections: forgetting texts must not give a name away twice.
      if (this.#entries.size >= TEXTS_MAX) this.#entries.clear()
      const { text, params } = translate(sql)
      // What has several statements can only be sent unprepared.
      const nameable = params <= NAMED_PARAMS_MAX && !text.includes(';') && !LIST.test(text)
      entry = { text, name: undefined, uses: 0, nameable }
      this.#entries.set(sql, entry)
    }
    entry.uses += 1
    if (
      entry.nameable &&
      entry.name === undefined &&
      entry.uses > USES_BEFORE_NAMED &&
      this.#names < NAMES_MAX
    ) {
      this.#names += 1
      entry.name = `s${this.#names}`
    }
    return entry
  }
}

/** Strings, quoted names, comments and dollar quotes: there a `?` is just a character. */
const OPAQUE =
  /E'(?:[^'\\]|\\.|'')*'|'(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n]*|\/\*[\s\S]*?\*\/|\$(\w*)\$[\s\S]*?\$\1\$|\?/gi

export function translate(sql: string): { text: string; params: number } {
  let params = 0
  const text = sql.replaceAll(OPAQUE, (found) => {
    if (found !== '?') return found
    params += 1
    return `$${params}`
  })
  return { text, params }
}
