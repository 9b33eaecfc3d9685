/** Which scopes a call needs: any one of those listed. */
export const gmailScopes = {
  full: 'https://mail.google.com/',
  modify: 'https://www.googleapis.com/auth/gmail.modify',
  readonly: 'https://www.googleapis.com/auth/gmail.readonly',
  metadata: 'https://www.googleapis.com/auth/gmail.metadata',
  insert: 'https://www.googleapis.com/auth/gmail.insert',
  send: 'https://www.googleapis.com/auth/gmail.send',
  compose: 'https://www.googleapis.com/auth/gmail.compose',
  labels: 'https://www.googleapis.com/auth/gmail.labels',
} as const

export type ScopeNeed =
  | 'read'
  | 'content'
  | 'modify'
  | 'delete'
  | 'insert'
  | 'send'
  | 'compose'
  | 'drafts'
  | 'labels'
  | 'labelsRead'

const { full, modify, readonly, metadata, insert, send, compose, labels } = gmailScopes

const NEEDS: Record<ScopeNeed, readonly string[]> = {
  read: [full, modify, readonly, metadata],
  content: [full, modify, readonly],
  modify: [full, modify],
  delete: [full],
  insert: [full, modify, insert],
  send: [full, modify, compose, send],
  compose: [full, modify, compose],
  drafts: [full, modify, compose, readonly],
  labels: [full, modify, labels],
  labelsRead: [full, modify, readonly, labels, metadata],
}

export function allows(granted: readonly string[], need: ScopeNeed): boolean {
  return NEEDS[need].some((scope) => granted.includes(scope))
}
