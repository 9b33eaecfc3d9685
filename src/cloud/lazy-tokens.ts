/** The vault is opened by the first call: who only reads what is stored here needs no secret. */
import type { TokenSource } from './token-source.ts'

export function lazyTokens(open: () => Promise<TokenSource>): TokenSource {
  let opening: Promise<TokenSource> | undefined
  let opened: TokenSource | undefined
  return {
    async access(signal) {
      opening ??= open()
      // A failure is not kept: the key may be there the next time.
      opening.catch(() => {
        opening = undefined
      })
      opened = await opening
      return opened.access(signal)
    },
    refused: (token) => opened?.refused(token),
  }
}
