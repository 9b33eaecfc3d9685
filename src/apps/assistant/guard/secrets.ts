/**
 * Secrets in mail: keys and tokens by their form, passwords and one-time codes by the words beside them. They are
 * taken out before a model reads a text, so that not even one that is taken over can give them away, and once more out
 * of what it writes.
 */
import { MASK, redactText } from '../../../base/redaction.ts'

export const SECRET_MARK = '[secret removed]'

/** Bounded repetitions only: no text takes more than linear time. */
const WORDS =
  'password|passwort|kennwort|passcode|passphrase|mot de passe|contraseña|clave(?: de acceso)?|senha|wachtwoord|hasło|пароль|pass(?:wd)?|pwd|pin|puk|tan|otp|cvv|cvc|one[- ]time (?:code|password)|einmal(?:code|passwort|kennwort)|security code|sicherheitscode|(?:verification|confirmation|access|login|sign-?in|recovery|backup|auth(?:entication)?|2fa|mfa) codes?|bestätigungscode|verifizierungscode|zugangscode|anmeldecode|code (?:de|à usage) [\\p{L} ]{3,20}|código(?: de [\\p{L}]{3,20})?|codice(?: di [\\p{L}]{3,20})?|seed phrase|recovery phrase|api[- ]?key|secret|code(?=\\s{0,3}[:=]\\s{0,3}(?:[A-Z]-)?\\d)'
/** `Your password is: x`, `PIN x`, `code = x`. */
const NAMED = new RegExp(
  `(?<![\\p{L}\\p{N}])((?:${WORDS})(?:["'»”)]{0,2})(?:\\s{0,4}(?:is|ist|lautet|est|es|è|é|for [\\p{L}]{2,20}|für [\\p{L}]{2,20}|:|=|-|–|—|→){1,2}){1,3}\\s{0,4}["'«„“(\`*]{0,3})(\\d{2,4}(?:[ -]\\d{2,4}){1,3}(?!\\d)|[^\\s"'»”)\`*,;]{3,80})`,
  'giu',
)
/** A code that stands before its word: `123456 is your verification code`. */
const CODE_FIRST =
  /(?<![\p{L}\p{N}/-])((?:[A-Z]-)?\d{3,4}[ -]?\d{2,4})(?=\s{1,3}(?:is|ist|est|es|è|lautet)\s{1,3}(?:your|the|ihr|dein|votre|ton|su|tu|il tuo|der|le|el)?\s{0,3}(?:[\p{L}0-9-]{1,30}\s{1,2}){0,3}(?:code|otp|pin|tan|password|passwort|código|codice|bestätigungscode))/giu
/** Digits near a word for codes, on the same line or the next. */
const CODE_NEAR =
  /((?:one[- ]time|einmal|verification|verify|confirmation|security|sicherheits|bestätigungs|login|sign-?in|authentication|2fa|mfa|otp|tan|code de|código de|codice di)[^\n]{0,120}\n?[^\n\d]{0,60})(?<![\d/.,-])(\d{3}[ -]?\d{3}|\d{4}|\d{5}|\d{7,8})(?![\d/.,-]?\d)/giu
const SHAPES =
  /\b(?:AKIA|ASIA)[A-Z0-9]{16}\b|\bglpat-[\w-]{16,}|\bgithub_pat_\w{20,}|\bnpm_\w{30,}|\bsq0\w{3}-[\w-]{20,}|\b(?:sk|pk|rk|whsec)_(?:live|test)?_?[A-Za-z0-9]{12,}|\bSG\.[\w-]{16,}\.[\w-]{16,}|\bhf_\w{20,}|\bdop_v1_\w{30,}|-----BEGIN [A-Z ]{0,30}KEY-----[^-]{0,8000}(?:-----END [A-Z ]{0,30}KEY-----)?|\bssh-(?:rsa|ed25519) [A-Za-z0-9+/=]{40,}/g
/** Words that follow `password is` in honest sentences. */
const HARMLESS =
  /^(?:not|no|the|a|an|your|to|my|our|in|on|required|needed|reset|expired|changed|incorrect|wrong|invalid|protected|abgelaufen|falsch|geändert|nicht|notwendig|erforderlich|expiré|requis|caducada|necesari[ao]|sent|below|above|attached|will|was|has|should|must|can|same|still|one|and|or|of|please|bitte|hier|here|von|pour|\[secret|\[redacted\]|\[todo:?)$/i

const SECRET_CHARS_MAX = 200
const REPEATED_MAX = 50

/** The text with secrets taken out visibly, and what they were. */
export function withoutSecrets(text: string): { text: string; secrets: string[] } {
  const secrets: string[] = []
  const take = (secret: string): string => {
    secrets.push(secret.slice(0, SECRET_CHARS_MAX))
    return SECRET_MARK
  }
  let clean = text.replace(SHAPES, (shape) => take(shape))
  clean = clean.replace(NAMED, (all, name: string, said: string) => {
    const value = said.replace(/[.!?:]+$/, '')
    const isWord = HARMLESS.test(value) || said.startsWith('[') || value.length < 3
    return isWord ? all : name + take(value) + said.slice(value.length)
  })
  clean = clean.replace(CODE_FIRST, (code) => take(code))
  clean = clean.replace(CODE_NEAR, (all, before: string, code: string) =>
    isYear(code) ? all : before + take(code),
  )
  // The same code may stand without its word somewhere else.
  for (const secret of new Set(secrets.slice(0, REPEATED_MAX))) {
    if (secret.length >= 5 && /\d/.test(secret)) clean = clean.replaceAll(secret, SECRET_MARK)
  }
  // What is known of keys and tokens elsewhere, a piece at a time because it reads no more than a piece.
  clean = inPieces(clean, redactText).replaceAll(MASK, SECRET_MARK)
  return { text: clean, secrets }
}

function isYear(code: string): boolean {
  return /^(?:19|20)\d\d$/.test(code)
}

const PIECE_CHARS = 12_000

function inPieces(text: string, change: (piece: string) => string): string {
  let out = ''
  for (let at = 0; at < text.length; ) {
    let end = Math.min(text.length, at + PIECE_CHARS)
    const line = text.lastIndexOf('\n', end)
    if (end < text.length && line > at) end = line + 1
    out += change(text.slice(at, end))
    at = end
  }
  return out
}
