import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import ignore from 'ignore'
import { IgnoreRules, RULE_CHARS_MAX, RULES_CHARS_MAX, RULES_MAX, WILD_CHARS_MAX } from './ignore-rules.ts'

function ignores(rules: string, path: string): boolean {
  return new IgnoreRules(rules.split('\n'), 'a test').ignores(path.replace(/\/$/, ''), path.endsWith('/'))
}

test('every kind of pattern that a .gitignore knows', () => {
  const cases: [rules: string, yes: string[], no: string[]][] = [
    ['a', ['a', 'x/a', 'a/b', 'A', 'x/a/y/z'], ['ab', 'b/ab']],
    ['a/', ['a/', 'x/a/', 'a/b'], ['a', 'x/a']],
    ['/a', ['a', 'a/b'], ['x/a']],
    ['a/b', ['a/b', 'a/b/c'], ['x/a/b', 'a/x/b']],
    ['*.log', ['x.log', 'd/.log', 'd/X.LOG'], ['x.logs', 'log']],
    ['a/*', ['a/b', 'a/b/c'], ['a', 'a/']],
    ['a/**', ['a/b', 'a/b/c'], ['a', 'a/', 'x/a/b']],
    ['**/a', ['a', 'x/y/a'], ['xa']],
    ['a/**/b', ['a/b', 'a/x/b', 'a/x/y/b'], ['b', 'a/xb']],
    ['**/a/**/b/**/c', ['a/b/c', 'x/a/y/b/z/c', 'a/a/b/b/c'], ['a/c', 'b/a/c']],
    ['?.txt', ['a.txt', 'd/é.txt'], ['.txt', 'ab.txt']],
    ['[a-c]x[!0-9]', ['bxq', 'Cx-'], ['dxq', 'ax5']],
    ['[]-]', [']', '-'], ['a']],
    ['[[:digit:]_]', ['7', '_'], ['a']],
    ['\\#a', ['#a'], ['a']],
    ['#a', [], ['#a', 'a']],
    ['\\!a', ['!a'], ['a']],
    ['a\\*', ['a*'], ['ab']],
    ['a  ', ['a'], ['a  ']],
    ['a\\ ', ['a '], ['a']],
    ['a\r', ['a'], []],
    ['résumé', ['re\u0301sume\u0301'], []],
    ['*.log\n!keep.log', ['a.log'], ['keep.log']],
    ['d/\n!d/keep', ['d/keep'], []],
    ['d/*\n!d/keep', ['d/x'], ['d/keep']],
    ['[a', [], ['[a', 'a']],
    ['a\\', [], ['a', 'a\\']],
    ['\n  \n', [], ['a', ' ']],
  ]
  for (const [rules, yes, no] of cases) {
    for (const path of yes) assert.ok(ignores(rules, path), `${JSON.stringify(rules)} ignores ${path}`)
    for (const path of no)
      assert.ok(!ignores(rules, path), `${JSON.stringify(rules)} does not ignore ${path}`)
  }
})

test('rules of every kind decide as another implementation of .gitignore does', () => {
  const name = fc.stringMatching(/^[ab.]{1,3}$/).filter((text) => !/^\.+$/.test(text))
  const part = fc.oneof(name, fc.constantFrom('*', '**', 'a*', '*b', '?', 'a?b', '*a*b', '[ab]', '[!a]'))
  const rule = fc
    .tuple(fc.constantFrom('', '!'), fc.constantFrom('', '/'), fc.array(part, { minLength: 1, maxLength: 4 }), fc.constantFrom('', '/')) // biome-ignore format: the parts in their order
    .map(([not, top, parts, end]) => `${not}${top}${parts.join('/')}${end}`)
  const path = fc.array(name, { minLength: 1, maxLength: 5 }).map((names) => names.join('/'))
  fc.assert(
    fc.property(
      fc.array(rule, { minLength: 1, maxLength: 4 }),
      path,
      fc.boolean(),
      (rules, where, isFolder) => {
        const other = ignore().add(rules)
        assert.equal(
          new IgnoreRules(rules, 'a test').ignores(where, isFolder),
          other.ignores(isFolder ? `${where}/` : where),
        )
      },
    ),
    { numRuns: 3_000 },
  )
})

test('more patterns, or longer ones, than can be matched quickly are refused with their limits', () => {
  const refused = { code: 'patterns-too-long' }
  const rules = (lines: string[]) => () => new IgnoreRules(lines, '.tidemarkignore')
  assert.throws(rules(Array(RULES_MAX + 1).fill('a')), refused)
  assert.throws(rules(['a'.repeat(RULE_CHARS_MAX + 1)]), refused)
  assert.throws(rules(Array(100).fill('a'.repeat(RULES_CHARS_MAX / 100 + 1))), refused)
  assert.throws(rules(Array(10).fill(`a*${'b'.repeat(WILD_CHARS_MAX / 10)}`)), refused)
  assert.doesNotThrow(rules(Array(RULES_MAX).fill('a')))
  assert.doesNotThrow(rules(Array(RULES_MAX).fill(`# ${'a'.repeat(1_000)}`)))
})

test('the more a path may cost, the fewer are judged before others have their turn', () => {
  const turnOf = (lines: string[]) => new IgnoreRules(lines, 'a test').turnPaths
  assert.equal(turnOf(['*.log', 'node_modules/', '~*', '/build']), 2_000)
  const most = Array(WILD_CHARS_MAX / 128).fill(`*${'a'.repeat(124)}?*`)
  assert.ok(turnOf(most) < 120, `${turnOf(most)}`)
})

test('a class of characters counts with all its members, which are looked through for each character', () => {
  const members = 'abcdefghijklmnopqrstuvwxyz0123456789'
  const hostile = Array(128).fill(`*[${members.repeat(13)}]!`)
  assert.ok(hostile.join('\n').length < 4 * RULES_CHARS_MAX, 'as long as a file of rules may be')
  assert.throws(() => new IgnoreRules(hostile, '.tidemarkignore'), { code: 'patterns-too-long' })
  assert.doesNotThrow(() => new IgnoreRules(Array(100).fill('[Bb]in/[Dd]ebug[_-]*.[oa]'), '.tidemarkignore'))
})

test('no pattern makes a path cost more than the two are long', () => {
  // Each of these keeps a matcher that tries every way busy for longer than this run may take.
  const hostile: [rule: string, path: string][] = [
    [`${'**/a/'.repeat(11)}b`, `${'a/'.repeat(40)}c`],
    [`${'**/a/'.repeat(100)}b`, `${'a/'.repeat(200)}c`],
    [`${'*a'.repeat(200)}b`, 'a'.repeat(400)],
    [`${'**/*a*a/'.repeat(60)}b`, `${'aaaa/'.repeat(80)}c`],
    [`${'a*'.repeat(100)}/${'*[!b]'.repeat(60)}b`, `${'a'.repeat(200)}/${'a'.repeat(200)}`],
    [`${'***/'.repeat(100)}b`, `${'a/'.repeat(200)}c`],
  ]
  for (const [rule, path] of hostile) assert.equal(ignores(rule, path), false, rule)
})
