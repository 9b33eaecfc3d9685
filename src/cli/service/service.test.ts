/** The files and commands of `tidemark service`, for both managers and awkward paths. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { UsageError } from '../../base/errors.ts'
import { type ServiceInput, servicePlan } from './unit.ts'

const input: ServiceInput = {
  platform: 'linux',
  userHome: '/home/ann',
  configHome: undefined,
  uid: 501,
  isSystem: false,
  user: undefined,
  command: ['/opt/tidemark/bin/tidemark', '--home', '/home/ann/data', 'serve'],
  home: '/home/ann/data',
}

describe('a systemd unit', () => {
  test('of a user lies in their configuration folder and reloads by SIGHUP', () => {
    const { file, content, install, uninstall } = servicePlan(input)
    assert.equal(file, '/home/ann/.config/systemd/user/tidemark.service')
    assert.match(content, /^ExecStart=\/opt\/tidemark\/bin\/tidemark --home \/home\/ann\/data serve$/m)
    assert.match(content, /^ExecReload=\/bin\/kill -HUP \$MAINPID$/m)
    assert.match(content, /^WantedBy=default\.target$/m)
    assert.doesNotMatch(content, /^User=/m)
    for (const command of [...install, ...uninstall])
      assert.deepEqual(command.slice(0, 2), ['systemctl', '--user'])
  })

  test('of the machine runs as the user that was named', () => {
    const { file, content, status } = servicePlan({ ...input, isSystem: true, user: 'ann' })
    assert.equal(file, '/etc/systemd/system/tidemark.service')
    assert.match(content, /^User=ann$/m)
    assert.match(content, /^WantedBy=multi-user\.target$/m)
    assert.deepEqual(status, ['systemctl', 'is-active', 'tidemark.service'])
  })

  test('closes off what the server does not need; what a manager of a user cannot close, only that of the machine does', () => {
    const { content } = servicePlan(input)
    for (const line of [
      ...['NoNewPrivileges=yes', 'ProtectSystem=full', 'PrivateTmp=yes', 'SystemCallFilter=@system-service'],
      ...['RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK', 'SystemCallFilter=~@privileged'],
      ...['RestrictNamespaces=yes', 'RestrictSUIDSGID=yes', 'LockPersonality=yes', 'UMask=0077'],
    ]) {
      assert.ok(content.split('\n').includes(line), line)
    }
    // Folders that are synced lie in homes, and V8 writes code.
    assert.doesNotMatch(content, /ProtectHome|MemoryDenyWriteExecute|ProtectSystem=strict/)
    const machine = servicePlan({ ...input, isSystem: true, user: 'ann' }).content
    for (const line of ['CapabilityBoundingSet=', 'PrivateDevices=yes', 'ProtectKernelModules=yes']) {
      assert.ok(machine.split('\n').includes(line), line)
      assert.ok(!content.split('\n').includes(line), line)
    }
  })

  test('quotes paths, and what systemd would replace', () => {
    const { content } = servicePlan({
      ...input,
      command: ['/opt/t', '--home', '/home/a "b" 50%/$HOME', 'serve'],
    })
    assert.match(content, /^ExecStart=\/opt\/t --home "\/home\/a \\"b\\" 50%%\/\$\$HOME" serve$/m)
  })
})

describe('a launchd plist', () => {
  test('of a user is an agent, with its text escaped', () => {
    const mac: ServiceInput = {
      ...input,
      platform: 'darwin',
      command: ['/opt/t', '--home', '/a&<b>', 'serve'],
    }
    const { file, content, install } = servicePlan(mac)
    assert.equal(file, '/home/ann/Library/LaunchAgents/tidemark.serve.plist')
    assert.match(content, /<string>\/a&amp;&lt;b&gt;<\/string>/)
    assert.deepEqual(install, [['launchctl', 'bootstrap', 'gui/501', file]])
  })

  test('of the machine is a daemon of the user that was named', () => {
    const { file, content } = servicePlan({ ...input, platform: 'darwin', isSystem: true, user: 'ann' })
    assert.equal(file, '/Library/LaunchDaemons/tidemark.serve.plist')
    assert.match(content, /<key>UserName<\/key>\n {2}<string>ann<\/string>/)
  })
})

test('a path with a line break and a system without services are refused', () => {
  assert.throws(() => servicePlan({ ...input, command: ['/a\nExecStartPre=/bin/x'] }), UsageError)
  assert.throws(() => servicePlan({ ...input, platform: 'win32' }), /no services on win32/)
})
