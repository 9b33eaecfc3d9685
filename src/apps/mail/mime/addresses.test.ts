import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { parseAddresses } from './addresses.ts'
import { ADDRESSES_MAX, collectProblems } from './limits.ts'

const list = (text: string): string[] =>
  parseAddresses(text, collectProblems()).map(({ name, address }) => `${name}|${address}`)

describe('address lists', () => {
  const cases: readonly [what: string, text: string, found: string[]][] = [
    ['bare', 'a@b.c', ['|a@b.c']],
    ['with names', 'A B <a@b.c>, "C, D" <c@d.e>', ['A B|a@b.c', 'C, D|c@d.e']],
    ['with escapes in names', '"The \\"Boss\\"" <a@b.c>', ['The "Boss"|a@b.c']],
    ['with encoded names that hide commas', '=?utf-8?Q?M=C3=BCller=2C_J?= <m@b.c>', ['Müller, J|m@b.c']],
    ['with encoded names in quotes', '"=?utf-8?Q?J=C3=B6rg?=" <j@b.c>', ['Jörg|j@b.c']],
    ['with names as comments', 'a@b.c (A (the) B)', ['A (the) B|a@b.c']],
    ['with comments anywhere', 'A (x) B <a@b.c> (home)', ['A B|a@b.c']],
    ['in groups', 'Team: a@b.c, B <b@b.c>;, d@e.f', ['|a@b.c', 'B|b@b.c', '|d@e.f']],
    ['in empty groups', 'undisclosed-recipients:;', ['undisclosed-recipients|']],
    ['in an empty group that is not closed', 'Undisclosed recipients: ', ['Undisclosed recipients|']],
    ['in empty groups among others', 'a@b.c, "No, one": , ;, Team: d@e.f;', ['|a@b.c', 'No, one|', '|d@e.f']],
    ['in groups without a name', ':;, : a@b.c;', ['|a@b.c']],
    ['with semicolons for commas', 'a@b.c; d@e.f;', ['|a@b.c', '|d@e.f']],
    ['without brackets', 'John Doe john@b.c', ['John Doe|john@b.c']],
    ['with a bracket that is not closed', 'A <a@b.c, B <d@e.f>', ['A|a@b.c', 'B|d@e.f']],
    ['with a bracket that is not closed at the end', 'A <a@b.c', ['A|a@b.c']],
    ['with a quote that is not closed', '"A <a@b.c>, d@e.f', ['"A|a@b.c', '|d@e.f']],
    ['with a comment that is not closed', 'A (b <a@b.c>', ['A (b|a@b.c']],
    ['with quoted local parts', '"john doe"@b.c', ['|"john doe"@b.c']],
    ['that are quoted as a whole', '"a@b.c"', ['|a@b.c']],
    ['with the address as the name', '"a@b.c" <a@b.c>', ['a@b.c|a@b.c']],
    ['with routes and blanks', '<@x,@y:a @ b.c>, <mailto:d@e.f>', ['|a@b.c', '|d@e.f']],
    ['without any address', 'John Doe', ['John Doe|']],
    ['with nothing in them', ' , ;,<>, ""', []],
    ['with raw text beyond ASCII', 'Jörg <j@münchen.de>', ['Jörg|j@münchen.de']],
    ['with control characters', 'A\u0000B\u0007 <a@b.c>', ['A B|a@b.c']],
  ]
  for (const [what, text, found] of cases) test(what, () => assert.deepEqual(list(text), found))

  test('end at a limit, which is said', () => {
    const problems = collectProblems()
    assert.equal(parseAddresses('a@b.c,'.repeat(ADDRESSES_MAX + 5), problems).length, ADDRESSES_MAX)
    assert.deepEqual(problems.list, ['a header has more than 10000 addresses'])
  })
})
