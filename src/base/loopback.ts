/** Addresses that only this machine has. */
import { BlockList, isIP } from 'node:net'

const loopback = new BlockList()
loopback.addSubnet('127.0.0.0', 8, 'ipv4')
loopback.addAddress('::1', 'ipv6')

export function isLoopback(host: string): boolean {
  const name = host.replace(/^\[(.*)\]$/, '$1').toLowerCase()
  const family = isIP(name)
  return family === 0 ? name === 'localhost' : loopback.check(name, family === 6 ? 'ipv6' : 'ipv4')
}

type Reach = { host: string; allowedHosts?: readonly string[] | undefined }

/**
 * The name by which others reach the server; undefined where only this machine does. A name counts as well as an
 * address: what has it forwards to us, and whoever it forwards for seems to be on this machine.
 */
export function exposedAs({ host, allowedHosts = [] }: Reach): string | undefined {
  return [host, ...allowedHosts].find((name) => !isLoopback(name))
}
