/** What an app may be allowed to do with drives. */

export const graphScopes = {
  read: 'Files.Read',
  readWrite: 'Files.ReadWrite',
  readWriteAll: 'Files.ReadWrite.All',
  sites: 'Sites.Read.All',
  user: 'User.Read',
  offline: 'offline_access',
} as const

/** What a client of this kind asks for. */
export const driveScopes: readonly string[] = [graphScopes.readWrite, graphScopes.user, graphScopes.offline]

/** What lies in libraries of SharePoint is not one's own. */
export function allowsLibraries(scopes: readonly string[]): boolean {
  return scopes.some((scope) =>
    /^Files\.Read(?:Write)?\.All$/i.test(scope.replace('https://graph.microsoft.com/', '')),
  )
}

export function allowsSites(scopes: readonly string[]): boolean {
  return scopes.some((scope) =>
    /^Sites\.Read(?:Write)?\.All$/i.test(scope.replace('https://graph.microsoft.com/', '')),
  )
}

export function allows(scopes: readonly string[], need: 'read' | 'write'): boolean {
  const wanted = need === 'read' ? /^Files\.Read/i : /^Files\.ReadWrite/i
  return scopes.some((scope) => wanted.test(scope.replace('https://graph.microsoft.com/', '')))
}
