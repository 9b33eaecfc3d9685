import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { SentAlert } from '../engine/observe/alert-delivery.ts'
import { type DesktopInput, desktopSinks, notifierFor } from './desktop.ts'

const DESKTOP = { WAYLAND_DISPLAY: 'wayland-0', PATH: 'bin:/usr/local/bin:/usr/bin' }
const there = (path: string): boolean => ['/usr/bin/notify-send', '/usr/bin/osascript'].includes(path)
const on = (input: Partial<DesktopInput>): string | undefined =>
  notifierFor({ env: DESKTOP, platform: 'linux', uid: 1000, isThere: there, ...input })?.file

describe('a notification', () => {
  test('is shown where a desktop is, and nowhere else', () => {
    assert.equal(on({}), '/usr/bin/notify-send')
    assert.equal(on({ env: { DISPLAY: ':0', PATH: '/usr/bin' } }), '/usr/bin/notify-send')
    assert.equal(on({ platform: 'darwin', env: {} }), '/usr/bin/osascript')
    const server = { PATH: '/usr/bin', DBUS_SESSION_BUS_ADDRESS: 'unix:path=/run/user/1000/bus' }
    assert.equal(on({ env: server }), undefined, 'a server has a session bus and no desktop')
    assert.equal(on({ env: { ...DESKTOP, SSH_CONNECTION: '10.0.0.1 1 10.0.0.2 22' } }), undefined, 'over SSH')
    assert.equal(on({ uid: 0 }), undefined, 'the desktop is another user’s')
    assert.equal(on({ isThere: () => false }), undefined, 'the program is missing')
    assert.equal(on({ env: { ...DESKTOP, PATH: 'bin:.' } }), undefined, 'no program of the working folder')
    assert.equal(on({ platform: 'win32' }), undefined)
    assert.equal(on({ platform: 'darwin', env: { SSH_TTY: '/dev/ttys1' } }), undefined)
    assert.deepEqual(desktopSinks({ env: {}, platform: 'linux', uid: 1000 }), [])
  })

  test('carries hostile text as text: no option, no markup, no script, no shell, and not too long', async () => {
    const text = `-u low <img src=x> & "; do shell script "id" \u001b[2J\u202e ${'x'.repeat(1_000)}`
    const alert: SentAlert = { condition: 'stale', target: 'mail:me', severity: 'critical', text, at: 0 }
    for (const platform of ['linux', 'darwin'] as const) {
      const ran: { file: string; args: readonly string[] }[] = []
      const [sink] = desktopSinks({
        env: DESKTOP,
        platform,
        uid: 1000,
        isThere: there,
        run: async (file, args) => void ran.push({ file, args }),
      })
      await sink!.send(alert, new AbortController().signal)
      const [{ args } = { args: [] }] = ran
      const shown = args.at(-1)!
      assert.equal(args.at(-2), 'Tidemark needs you')
      assert.doesNotMatch(shown, /[\p{Cc}\p{Cf}]/u)
      assert.ok([...shown].length <= 330, `${shown.length} characters`)
      if (platform === 'linux') {
        assert.equal(args.at(-3), '--')
        assert.match(shown, /^-u low &lt;img src=x&gt; &amp; "/)
      } else {
        assert.ok(
          args.slice(0, -2).every((arg) => !arg.includes('img')),
          'the script has none of it',
        )
      }
    }
  })

  test('that cannot be shown is not tried again', async () => {
    const run = async (): Promise<void> => {
      throw new Error('no bus')
    }
    const [sink] = desktopSinks({ env: DESKTOP, platform: 'linux', uid: 1000, isThere: there, run })
    const alert: SentAlert = { condition: 'x', target: '', severity: 'warning', text: 'x', at: 0 }
    await assert.rejects(sink!.send(alert, new AbortController().signal), { kind: 'permanent' })
  })
})
