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

const inside = new BlockList()
for (const [subnet, bits] of [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['224.0.0.0', 3],
] as const) {
  inside.addSubnet(subnet, bits, 'ipv4')
}
for (const [subnet, bits] of [
  // With an address of IPv4 in them, which a gateway connects to: as such (::a.b.c.d), translated, 6to4.
  ['::', 96],
  ['::ffff:0:0:0', 96],
  ['64:ff9b::', 96],
  ['64:ff9b:1::', 48],
  ['2002::', 16],
  ['fc00::', 7],
  ['fe80::', 10],
  ['fec0::', 10],
  ['ff00::', 8],
] as const) {
  inside.addSubnet(subnet, bits, 'ipv6')
}

/** Of this machine or its network, where others than the whole world answer; what is no address counts as one. */
export function isInsideAddress(address: string): boolean {
  const name = address.replace(/^\[(.*)\]$/, '$1').toLowerCase()
  const family = isIP(name)
  return family === 0 || inside.check(name, family === 6 ? 'ipv6' : 'ipv4')
}

type Reach = { host: string; allowedHosts?: readonly string[] | undefined }

/**
 * The name by which others reach the server; undefined where only this machine does. A name counts as well as an
 * address: what has it forwards to us, and whoever it forwards for seems to be on this machine.
 */
export function exposedAs({ host, allowedHosts = [] }: Reach): string | undefined {
  return [host, ...allowedHosts].find((name) => !isLoopback(name))
}
