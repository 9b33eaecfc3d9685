/**
 * Drafts: a draft keeps its id while its message is replaced on every update.
 * Invariant: a draft's message is a living message with the label DRAFT, and belongs to one draft only.
 */
export class DraftBook {
  readonly #messageIds = new Map<string, string>()
  readonly #draftIds = new Map<string, string>()
  #created = 0

  create(messageId: string): string {
    this.#created += 1
    // Looks like Gmail's: an `r` and a number of which nothing can be learned.
    const id = `r${(0x5851f42d4c957f2dn * BigInt(this.#created)) & 0x7fffffffffffffffn}`
    this.set(id, messageId)
    return id
  }

  set(id: string, messageId: string): void {
    const previous = this.#messageIds.get(id)
    if (previous) this.#draftIds.delete(previous)
    this.#messageIds.set(id, messageId)
    this.#draftIds.set(messageId, id)
  }

  messageIdOf(id: string): string | undefined {
    return this.#messageIds.get(id)
  }

  draftIdOf(messageId: string): string | undefined {
    return this.#draftIds.get(messageId)
  }

  forgetMessage(messageId: string): void {
    const id = this.#draftIds.get(messageId)
    this.#draftIds.delete(messageId)
    if (id) this.#messageIds.delete(id)
  }
}
