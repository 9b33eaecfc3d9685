/** What waits for somebody. `text`: a whole sentence. */
export type Need = { stream: string; text: string }
