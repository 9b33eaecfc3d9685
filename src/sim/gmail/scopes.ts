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
  settingsBasic: 'https://www.googleapis.com/auth/gmail.settings.basic',
  settingsSharing: 'https://www.googleapis.com/auth/gmail.settings.sharing',
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
  | 'upload'
  | 'settingsRead'
  | 'settings'
  | 'settingsShare'

const { full, modify, readonly, metadata, insert, send, compose, labels, settingsBasic, settingsSharing } =
  gmailScopes

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
  // The first call of an upload has asked for what the message needs.
  upload: [full, modify, insert, send, compose],
  settingsRead: [full, modify, readonly, settingsBasic],
  settings: [settingsBasic],
  settingsShare: [settingsSharing],
}

/** Of the documents that describe the service. */
export function scopesFor(need: ScopeNeed): readonly string[] {
  return NEEDS[need]
}

export function allows(granted: readonly string[], need: ScopeNeed): boolean {
  return NEEDS[need].some((scope) => granted.includes(scope))
}
