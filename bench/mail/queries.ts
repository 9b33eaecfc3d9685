/** What people ask an archive, over the words of the generated mail: by kind, so that the slow ones can be named. */
export const QUERIES: readonly { kind: string; text: string }[] = [
  // Words that few messages have.
  ...each('rare', ['telescope Ottawa projector', '"Ref. 17"', 'Ref. 4711', 'subject:4711', 'zebra']),
  ...each('code name', ['vamiro', 'Häuser', '重要', 'Rückfrage', 'Schlüsselübergabe']),
  // Words that a large part of all messages has.
  ...each('common', ['invoice', 'the', 'harbour', 'please', 'Hello', 'we']),
  ...each('several words', [
    'invoice harbour',
    'kettle library tuesday',
    'bicycle OR umbrella',
    'boat map lease',
  ]),
  ...each('phrase', [
    '"spare key"',
    '"the old mill"',
    '"Best wishes"',
    '"on the shelf"',
    '"guest list" Ottawa',
  ]),
  ...each('from', ['from:alice', 'from:owen invoice', 'from:no-reply', 'from:tom.winslow "old mill"']),
  ...each('to and subject', [
    'to:ann',
    'to:clara subject:invoice',
    'subject:invoice',
    'subject:"Draft of the report"',
  ]),
  ...each('label', [
    'label:work',
    'label:receipts invoice',
    'in:inbox',
    'is:unread',
    'label:travel from:henry',
  ]),
  ...each('dates', [
    'after:2024/01/01 before:2024/02/01',
    'invoice before:2019/06/01',
    'newer_than:30d',
    'older_than:5y telescope',
  ]),
  ...each('attachment', ['has:attachment', 'has:attachment invoice', 'filename:pdf', 'larger:100k']),
  ...each('prefix', ['tele*', 'inv* harb*', 'subject:rep*', 'a*']),
  ...each('negation', ['invoice -harbour', '-label:work umbrella', '-from:no-reply in:inbox', 'the -the']),
]

function each(kind: string, texts: readonly string[]): { kind: string; text: string }[] {
  return texts.map((text) => ({ kind, text }))
}
