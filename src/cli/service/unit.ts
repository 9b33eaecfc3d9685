/** What systemd and launchd are told: the file, where it lies, and the commands that take it up and down. */
import { join } from 'node:path'
import { UsageError } from '../../base/errors.ts'

export type ServicePlan = {
  manager: 'systemd' | 'launchd'
  file: string
  content: string
  install: readonly (readonly string[])[]
  uninstall: readonly (readonly string[])[]
  status: readonly string[]
}

export type ServiceInput = {
  platform: NodeJS.Platform
  /** The user's own folder. */
  userHome: string
  /** XDG_CONFIG_HOME, where it is set. */
  configHome: string | undefined
  uid: number
  isSystem: boolean
  /** Whose service it is, where it is of the whole machine. */
  user: string | undefined
  /** The program and its arguments. */
  command: readonly string[]
  /** Where launchd lets it write. */
  home: string
}

const UNIT = 'tidemark.service'
const LABEL = 'tidemark.serve'

export function servicePlan(input: ServiceInput): ServicePlan {
  for (const text of [...input.command, input.home, input.user ?? '']) {
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
    if (/[\u0000-\u001f\u007f]/.test(text)) {
      throw new UsageError('A path with control characters cannot stand in a service.')
    }
  }
  if (input.platform === 'linux') return systemdPlan(input)
  if (input.platform === 'darwin') return launchdPlan(input)
  throw new UsageError(`There are no services on ${input.platform} that Tidemark knows.`, {
    code: 'service-unsupported',
    hint: 'Start "tidemark serve" with whatever starts programs there.',
  })
}

/**
 * What a process that was taken over could not do. Folders that are synced may lie anywhere but in the system's own
 * places, and may be added while it runs: so only these are closed (`full`), and homes are not. Memory stays
 * executable, since V8 compiles.
 */
const WALLS = [
  'NoNewPrivileges=yes',
  'ProtectSystem=full',
  'PrivateTmp=yes',
  'ProtectKernelTunables=yes',
  'ProtectControlGroups=yes',
  // Netlink is how the resolver learns which addresses this machine has.
  'RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK',
  'RestrictNamespaces=yes',
  'RestrictRealtime=yes',
  'RestrictSUIDSGID=yes',
  'LockPersonality=yes',
  'SystemCallArchitectures=native',
  'SystemCallFilter=@system-service',
  'SystemCallFilter=~@privileged',
  'SystemCallErrorNumber=EPERM',
]

/** These take capabilities away, which a user's own manager may not: a service of it would not start. */
const SYSTEM_WALLS = [
  'CapabilityBoundingSet=',
  'PrivateDevices=yes',
  'ProtectClock=yes',
  'ProtectHostname=yes',
  'ProtectKernelLogs=yes',
  'ProtectKernelModules=yes',
  'ProtectProc=invisible',
]

function systemdPlan({ isSystem, user, command, userHome, configHome }: ServiceInput): ServicePlan {
  const folder = isSystem
    ? '/etc/systemd/system'
    : join(configHome || join(userHome, '.config'), 'systemd', 'user')
  const systemctl = isSystem ? ['systemctl'] : ['systemctl', '--user']
  const content = `[Unit]
Description=Tidemark: a copy of your cloud, kept in step
After=network-online.target
Wants=network-online.target

[Service]
Type=simple
${isSystem ? `User=${user}\n` : ''}ExecStart=${command.map(systemdWord).join(' ')}
ExecReload=/bin/kill -HUP $MAINPID
# Whatever the reason: an address that is not there yet at boot, or a port that is taken, comes free.
Restart=on-failure
RestartSec=10
TimeoutStopSec=60
UMask=0077
${isSystem ? [...WALLS, ...SYSTEM_WALLS].join('\n') : WALLS.join('\n')}

[Install]
WantedBy=${isSystem ? 'multi-user.target' : 'default.target'}
`
  return {
    manager: 'systemd',
    file: join(folder, UNIT),
    content,
    install: [
      [...systemctl, 'daemon-reload'],
      [...systemctl, 'enable', UNIT],
      [...systemctl, 'restart', UNIT],
    ],
    uninstall: [
      [...systemctl, 'disable', '--now', UNIT],
      [...systemctl, 'daemon-reload'],
    ],
    status: [...systemctl, 'is-active', UNIT],
  }
}

function launchdPlan({ isSystem, user, command, userHome, uid, home }: ServiceInput): ServicePlan {
  const folder = isSystem ? '/Library/LaunchDaemons' : join(userHome, 'Library', 'LaunchAgents')
  const file = join(folder, `${LABEL}.plist`)
  const domain = isSystem ? 'system' : `gui/${uid}`
  const words = command.map((word) => `    <string>${xmlText(word)}</string>`).join('\n')
  const log = xmlText(join(home, 'serve.log'))
  const owner = isSystem ? `  <key>UserName</key>\n  <string>${xmlText(user ?? '')}</string>\n` : ''
  const content = `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
  <key>Label</key>
  <string>${LABEL}</string>
${owner}  <key>ProgramArguments</key>
  <array>
${words}
  </array>
  <key>RunAtLoad</key>
  <true/>
  <key>KeepAlive</key>
  <dict>
    <key>SuccessfulExit</key>
    <false/>
  </dict>
  <key>ThrottleInterval</key>
  <integer>10</integer>
  <key>ExitTimeOut</key>
  <integer>60</integer>
  <key>Umask</key>
  <integer>63</integer>
  <key>StandardOutPath</key>
  <string>${log}</string>
  <key>StandardErrorPath</key>
  <string>${log}</string>
</dict>
</plist>
`
  return {
    manager: 'launchd',
    file,
    content,
    install: [['launchctl', 'bootstrap', domain, file]],
    uninstall: [['launchctl', 'bootout', `${domain}/${LABEL}`]],
    status: ['launchctl', 'print', `${domain}/${LABEL}`],
  }
}

/** systemd replaces % and $ in what it runs, also between quotes. */
function systemdWord(word: string): string {
  const safe = word.replaceAll('%', '%%').replaceAll('$', '$$$$')
  return /^[\w@%+=:,./$-]+$/.test(safe) ? safe : `"${safe.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`
}

function xmlText(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}
