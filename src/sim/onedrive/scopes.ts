/** What an app may be allowed to do with drives. */

export const graphScopes = {
  read: 'Files.Read',
  readWrite: 'Files.ReadWrite',
  readWriteAll: 'Files.ReadWrite.All',
  user: 'User.Read',
  offline: 'offline_access',
} as const

/** What a client of this kind asks for. */
export const driveScopes: readonly string[] = [graphScopes.readWrite, graphScopes.user, graphScopes.offline]

export function allows(scopes: readonly string[], need: 'read' | 'write'): boolean {
  const wanted = need === 'read' ? /^Files\.Read/i : /^Files\.ReadWrite/i
  return scopes.some((scope) => wanted.test(scope.replace('https://graph.microsoft.com/', '')))
}
