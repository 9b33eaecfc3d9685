import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { FakeClock, systemClock } from '../../../base/clock.ts'
import { parseMessage } from '../mime/parse.ts'
import { mailDocument, plainDocument } from './html.ts'
import { HtmlRenderer, RENDER_MS_MAX } from './html-renderer.ts'
import { hostileMail } from './mail-api.suite.ts'

const bytes = (text: string) => ({ raw: Buffer.from(text), images: false })

describe('HTML of mail in a thread of its own', () => {
  test('is the same document as in this one; mail without any is none', async () => {
    const renderer = new HtmlRenderer({ clock: systemClock })
    const mail = hostileMail('<p>Hello <script>alert(1)</script><img src="cid:dot@example.com"></p>')
    for (const images of [false, true]) {
      const { html, attachments } = parseMessage(Buffer.from(mail))
      const document = mailDocument({ html: html!, attachments, images })
      assert.deepEqual(await renderer.render({ ...bytes(mail), images }), { document })
    }
    assert.deepEqual(await renderer.render(bytes('Subject: x\r\n\r\nonly text')), { document: null })
    await renderer.close()
  })

  test('is given up when it takes too long or dies, and the next message is shown', async () => {
    const clock = new FakeClock()
    const script = new URL('./html-thread-stuck.suite.ts', import.meta.url)
    const renderer = new HtmlRenderer({ clock, script })
    assert.deepEqual(await renderer.render(bytes('first')), { document: 'first' })
    const endless = renderer.render(bytes('endless'))
    const behind = renderer.render(bytes('behind it'))
    // This thread goes on meanwhile.
    for (let turn = 0; turn < 10; turn++) await new Promise((resolve) => setImmediate(resolve))
    await clock.advance(RENDER_MS_MAX)
    assert.equal(await endless, 'late')
    assert.deepEqual(await behind, { document: 'behind it' })
    assert.equal(await renderer.render(bytes('deadly')), 'late')
    assert.deepEqual(await renderer.render(bytes('last')), { document: 'last' })
    await renderer.close()
  })

  test('that could not be handed over keeps none of the next from being shown', async () => {
    const renderer = new HtmlRenderer({ clock: systemClock })
    const unsendable = { ...bytes('x'), raw: (() => {}) as unknown as Uint8Array }
    await assert.rejects(renderer.render(unsendable))
    assert.deepEqual(await renderer.render(bytes('Subject: x\r\n\r\ntext')), { document: null })
    await renderer.close()
    assert.equal(await renderer.render(bytes('Subject: x\r\n\r\ntext')), 'late')
  })

  test('has plain text in its place, which says so', () => {
    const document = plainDocument('<b>not bold</b> & plain')
    assert.match(document, /took too long to be made safe/)
    assert.match(document, /&lt;b&gt;not bold&lt;\/b&gt; &amp; plain/)
  })
})
