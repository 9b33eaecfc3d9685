import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { assertLinear } from '../../../base/growth.suite.ts'
import { originalSender, prepare } from './preprocess.ts'
import { describedMessage } from './router.ts'

type Found = { address: string; name: string; subject: string; text: string } | undefined

function found(text: string, headers: readonly (readonly [string, string])[] = []): Found {
  const original = originalSender(describedMessage({ from: 'desk@shop.example', text, headers }))
  if (!original) return undefined
  const { from, subject, text: body } = original
  return { address: from.address, name: from.name, subject, text: body }
}

const CY = { address: 'cy@client.example', name: 'Cy Lee', subject: 'My order', text: 'Where is it?\n\nCy' }

describe('the one who wrote a forwarded mail', () => {
  const dressed: Record<string, string> = {
    'Gmail, English': `FYI\n\n---------- Forwarded message ---------\nFrom: Cy Lee <cy@client.example>\nDate: Mon, 2 Mar 2026 at 10:00\nSubject: My order\nTo: <desk@shop.example>\n\n\nWhere is it?\n\nCy`,
    'Gmail, German': `---------- Weitergeleitete Nachricht ---------\nVon: Cy Lee <cy@client.example>\nDate: Mo., 2. März 2026\nSubject: My order\nTo: <desk@shop.example>\n\nWhere is it?\n\nCy`,
    'Gmail, French': `---------- Message transféré ---------\nDe : Cy Lee <cy@client.example>\nDate : lun. 2 mars 2026\nObjet : My order\nÀ : <desk@shop.example>\n\nWhere is it?\n\nCy`,
    'Apple Mail, English': `Begin forwarded message:\n\nFrom: Cy Lee <cy@client.example>\nSubject: My order\nDate: 2 March 2026\nTo: desk@shop.example\n\nWhere is it?\n\nCy`,
    'Apple Mail, quoted': `> Begin forwarded message:\n> \n> From: "Cy Lee" <cy@client.example>\n> Subject: My order\n> To: desk@shop.example\n> \n> Where is it?\n> \n> Cy`,
    'Outlook, English': `Can you look?\n\n________________________________\nFrom: Cy Lee <cy@client.example>\nSent: Monday, March 2, 2026 10:00\nTo: desk@shop.example\nSubject: My order\n\nWhere is it?\n\nCy`,
    'Outlook, German': `________________________________\nVon: Cy Lee <cy@client.example>\nGesendet: Montag, 2. März 2026\nAn: desk@shop.example\nBetreff: My order\n\nWhere is it?\n\nCy`,
    'Outlook, older': `-----Original Message-----\nFrom: Cy Lee [mailto:cy@client.example]\nSent: Monday\nTo: desk\nSubject: My order\n\nWhere is it?\n\nCy`,
    'Outlook, with stars': `*From:* Cy Lee <cy@client.example>\n*Sent:* Monday\n*To:* desk@shop.example\n*Subject:* My order\n\nWhere is it?\n\nCy`,
    Spanish: `---------- Mensaje reenviado ---------\nDe: Cy Lee <cy@client.example>\nFecha: lun\nAsunto: My order\nPara: <desk@shop.example>\n\nWhere is it?\n\nCy`,
    Italian: `---------- Messaggio inoltrato ---------\nDa: Cy Lee <cy@client.example>\nData: lun\nOggetto: My order\nA: <desk@shop.example>\n\nWhere is it?\n\nCy`,
    Portuguese: `---------- Mensagem encaminhada ---------\nDe: Cy Lee <cy@client.example>\nData: seg\nAssunto: My order\nPara: <desk@shop.example>\n\nWhere is it?\n\nCy`,
    Dutch: `---------- Doorgestuurd bericht ---------\nVan: Cy Lee <cy@client.example>\nDatum: ma\nOnderwerp: My order\nAan: <desk@shop.example>\n\nWhere is it?\n\nCy`,
    Czech: `---------- Přeposlaná zpráva ---------\nOd: Cy Lee <cy@client.example>\nDatum: po\nPředmět: My order\nKomu: <desk@shop.example>\n\nWhere is it?\n\nCy`,
    Polish: `---------- Wiadomość przekazana ---------\nOd: Cy Lee <cy@client.example>\nData: pon\nTemat: My order\nDo: <desk@shop.example>\n\nWhere is it?\n\nCy`,
    Russian: `---------- Пересылаемое сообщение ---------\nОт: Cy Lee <cy@client.example>\nДата: пн\nТема: My order\nКому: <desk@shop.example>\n\nWhere is it?\n\nCy`,
    Japanese: `---------- 転送メッセージ ---------\n差出人： Cy Lee <cy@client.example>\n日付： 3月2日\n件名： My order\n宛先： desk@shop.example\n\nWhere is it?\n\nCy`,
    Chinese: `---------- 转发的邮件 ---------\n发件人： Cy Lee <cy@client.example>\n日期： 周一\n主题： My order\n收件人： desk@shop.example\n\nWhere is it?\n\nCy`,
  }
  for (const [what, text] of Object.entries(dressed)) {
    test(`is found with what they wrote: ${what}`, () => {
      assert.deepEqual(found(text), CY)
    })
  }

  test('is found in the notices of helpdesks', () => {
    const crisp = `New message from a visitor on Crisp\n\nName: Cy Lee\nEmail: cy@client.example\nCountry: DE\n\nWhere is it?\n\nCy`
    assert.deepEqual(found(crisp), { ...CY, name: '', subject: '' })
    const zendesk = `##- Please type your reply above this line -##\n\nTicket: 77\nRequester: Cy Lee <cy@client.example>\nSubject: My order\n\nWhere is it?\n\nCy`
    assert.deepEqual(found(zendesk), CY)
  })

  test('is found by the header of a service that forwards, below the line for replies', () => {
    const headers = [['x-original-from', 'Cy Lee <cy@client.example>']] as const
    const text = '##- Bitte antworten Sie oberhalb dieser Zeile -##\nWhere is it?\n\nCy'
    assert.deepEqual(found(text, headers), { ...CY, subject: '' })
    assert.equal(found('hi', [['x-original-from', 'desk@shop.example']]), undefined)
  })

  test('is the first of several that a mail was forwarded through', () => {
    const inner = '---------- Forwarded message ---------\nFrom: in@deep.example\n\ninner'
    const outer = `---------- Forwarded message ---------\nFrom: out@near.example\nSubject: x\n\nsee\n${inner}`
    assert.equal(found(outer)?.address, 'out@near.example')
  })

  test('is nobody where a mail only speaks of somebody', () => {
    const plain = [
      '',
      'Hello, this is not forwarded.',
      'From: today on we are closed.',
      'From: cy@client.example\nis what he wrote as his address',
      'On Mon, Cy Lee <cy@client.example> wrote:\n> hello',
      'Forwarded message\n\nwithout any sender at all',
      'Name: Cy\nEmail: cy@client.example\n\nno helpdesk is named here',
    ]
    for (const text of plain) assert.equal(found(text), undefined, text)
  })
})

describe('reading a mail', () => {
  const text = '---------- Forwarded message ---------\nFrom: cy@client.example\nSubject: My order\n\nWhere?'
  const message = describedMessage({ from: 'desk@shop.example', subject: 'Fwd: My order', text })

  test('as it stands changes nothing of it', () => {
    const { from, subject } = message
    assert.deepEqual(prepare('default', message), { from, subject, text, forwardedBy: undefined })
  })

  test('as a helpdesk does tells who wrote it, and who forwarded it', () => {
    assert.deepEqual(prepare('helpdesk', message), {
      from: { name: '', address: 'cy@client.example' },
      subject: 'My order',
      text: 'Where?',
      forwardedBy: message.from,
    })
    const plain = { ...message, text: 'hello' }
    assert.equal(prepare('helpdesk', plain).text, 'hello')
  })

  test('takes time that grows with it and no faster, whatever stands in it', () => {
    const lines = [
      'From: a@b.c\nTo: x\n\n',
      '---------- Forwarded message ---------\n',
      'From: x@y.z\n',
      ' > > \n',
      'a@',
    ]
    for (const line of lines) {
      assertLinear({
        sizeMax: 400_000,
        make: (size) => describedMessage({ from: 'a@b.c', text: line.repeat(size / line.length) }),
        work: (one) => void originalSender(one),
      })
    }
  })
})
