/** Which scopes a call needs: any one of those listed. */
const AUTH = 'https://www.googleapis.com/auth'

export const driveScopes = {
  full: `${AUTH}/drive`,
  readonly: `${AUTH}/drive.readonly`,
  metadata: `${AUTH}/drive.metadata`,
  metadataReadonly: `${AUTH}/drive.metadata.readonly`,
} as const

export type ScopeNeed = 'metadata' | 'content' | 'write'

const { full, readonly, metadata, metadataReadonly } = driveScopes

const NEEDS: Record<ScopeNeed, readonly string[]> = {
  metadata: [full, readonly, metadata, metadataReadonly],
  content: [full, readonly],
  write: [full],
}

/** Of the documents that describe the service. */
export function scopesFor(need: ScopeNeed): readonly string[] {
  return NEEDS[need]
}

export function allows(granted: readonly string[], need: ScopeNeed): boolean {
  return NEEDS[need].some((scope) => granted.includes(scope))
}
