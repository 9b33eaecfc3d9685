/**
 * Finds the line on which a key stands. The TOML parser does not say; this looks at headers and at
 * `key =` alone, so a key inside an inline table has the line of the table, or none.
 */
export function tomlLines(text: string): Map<string, number> {
  const lines = new Map<string, number>()
  let table: string[] = []
  for (const [index, line] of text.split('\n').entries()) {
    const header = /^\s*\[\[?\s*([^\]]+?)\s*\]\]?/.exec(line)
    if (header?.[1]) table = keyParts(header[1])
    const assignment = header
      ? null
      : /^\s*((?:[\w-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[\w-]+|"[^"]*"|'[^']*'))*)\s*=/.exec(line)
    const parts = assignment?.[1] ? [...table, ...keyParts(assignment[1])] : table
    // The first line wins, for the key itself and for each table around it.
    for (let depth = 1; depth <= parts.length; depth++) {
      const key = parts.slice(0, depth).join('.')
      if (!lines.has(key)) lines.set(key, index + 1)
    }
  }
  return lines
}

function keyParts(text: string): string[] {
  return text.split('.').map((part) => part.trim().replace(/^(["'])(.*)\1$/, '$2'))
}
