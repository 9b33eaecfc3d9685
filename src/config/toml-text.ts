/** TOML that is no configuration of Tidemark's own: what people keep in a file and hand over. */
import { parse, stringify } from 'smol-toml'

/** Throws an error whose message names the place. */
export function readToml(text: string): unknown {
  return parse(text)
}

export function writeToml(value: Readonly<Record<string, unknown>>): string {
  return stringify(value)
}
