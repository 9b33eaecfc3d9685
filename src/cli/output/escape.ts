/**
 * What comes from mails, files and services is printed as text and never obeyed: control characters
 * would let a file name move the cursor, set the window's title or hide part of a line, and marks of
 * writing direction would show it in another order.
 */

/** C0, DEL, C1, line and paragraph separators, marks of direction, the byte order mark. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters to be escaped
const UNSAFE = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g

const SHORT: Record<string, string> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' }

/** Half of a pair alone is no character and would be written as garbage. */
const LONE_SURROGATE = /\p{Surrogate}/gu

/** One line that is safe to print. */
export function escapeControl(text: string): string {
  return text
    .replaceAll(UNSAFE, (char) => SHORT[char] ?? escapeCode(char))
    .replaceAll(LONE_SURROGATE, escapeCode)
}

/** Several lines that are safe to print. */
export function escapeLines(text: string): string {
  return text.split('\n').map(escapeControl).join('\n')
}

/** JSON that is still the same JSON, without the characters that JSON lets through. */
export function safeJson(value: unknown, indent?: number): string {
  // A value that JSON cannot hold, such as undefined, is null.
  const json = JSON.stringify(value, undefined, indent) ?? 'null'
  return json.replaceAll(UNSAFE, (char) => (char === '\n' ? char : escapeCode(char)))
}

function escapeCode(char: string): string {
  return `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`
}
