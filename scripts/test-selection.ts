/**
 * Which tests a change concerns: those that reach a changed file by imports, by the files and folders that they name,
 * or through the launcher, behind which the whole command line stands.
 *
 * A file names another with `join(ROOT, 'docs', 'mail.md')`, `new URL('../bin/tidemark', import.meta.url)` or a path or
 * pattern from the root such as 'src/**' in a string. What is reached too much costs time only, so a name of a folder
 * stands for all that is in it.
 */
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join, posix } from 'node:path'
import type { SourceFile } from './layers.ts'
import { importsOf, type ScannedSource, scanSource } from './source-scan.ts'

/** A change of these may change anything. */
const CONCERN_ALL: readonly string[] = ['package.json', 'package-lock.json', 'tsconfig.json']

/** A shell script is not read. */
const LAUNCHER = { path: 'bin/tidemark', starts: 'bin/tidemark.js' }

const IS_SOURCE = /\.(?:[jt]sx?|mjs)$/
const IS_TEST = /\.test\.ts$/

/** The files that git knows or would add, with the text of those that can name others. */
export function repositoryFiles(root: string): SourceFile[] {
  const listed = git(root, ['ls-files', '--cached', '--others', '--exclude-standard'])
  return listed.map((path) => ({ path, text: IS_SOURCE.test(path) ? readIfThere(join(root, path)) : '' }))
}

/** What differs from where this work left `ref`, committed or not. */
export function changedFiles(root: string, ref: string): string[] {
  const [base = ref] = git(root, ['merge-base', ref, 'HEAD'])
  const changed = git(root, ['diff', '--name-only', '--no-renames', base])
  const added = git(root, ['ls-files', '--others', '--exclude-standard'])
  return [...new Set([...changed, ...added])].sort()
}

export function testsConcerned(files: readonly SourceFile[], changed: readonly string[]): string[] {
  const tests = files.map(({ path }) => path).filter((path) => IS_TEST.test(path))
  if (changed.some((path) => CONCERN_ALL.includes(path))) return tests
  const users = usersOf(files, changed)
  const concerned = new Set(changed)
  // A set hands out what is added while it is walked.
  for (const path of concerned) for (const user of users.get(path) ?? []) concerned.add(user)
  return tests.filter((path) => concerned.has(path))
}

/** By file, those that name it. A file that is gone is still named by those that were not changed with it. */
function usersOf(files: readonly SourceFile[], changed: readonly string[]): Map<string, Set<string>> {
  const paths = [...new Set([...files.map(({ path }) => path), ...changed])].sort()
  const known = new Set(paths)
  const users = new Map<string, Set<string>>()
  const add = (path: string, user: string): void => {
    const set = users.get(path) ?? new Set()
    users.set(path, set.add(user))
  }
  const inFolder = new Map<string, string[]>()
  for (const path of paths)
    for (let folder = posix.dirname(path); folder !== '.'; folder = posix.dirname(folder)) {
      const members = inFolder.get(folder) ?? []
      members.push(path)
      inFolder.set(folder, members)
    }
  for (const { path, text } of files)
    for (const named of namesIn(path, text)) {
      const members = known.has(named) ? [named] : (inFolder.get(named) ?? [])
      for (const member of members) if (member !== path) add(member, path)
    }
  add(LAUNCHER.starts, LAUNCHER.path)
  return users
}

/** Paths from the root that a source names; not all of them need exist. */
function namesIn(path: string, text: string): Set<string> {
  const source = scanSource(text)
  const folder = posix.dirname(path)
  const names = new Set<string>()
  for (const { specifier } of importsOf(source))
    if (specifier?.startsWith('.')) names.add(posix.join(folder, specifier))
  for (const { text: string } of source.strings) {
    // `npm run` and `sh` are given whole lines, and globSync patterns.
    for (const word of string.split(/\s+/)) {
      const steady = posix.normalize(word.replace(/\/?[^/]*[*{].*$/s, ''))
      const isPlace = steady.includes('/') || steady !== word
      if (isPlace && /^[\w@]/.test(steady)) names.add(steady.replace(/\/$/, ''))
    }
  }
  for (const name of joinedNames(source, folder)) {
    // `join(import.meta.dirname, '..')` is where everything is, and names nothing.
    if (!`${path}/`.startsWith(`${name}/`) && name !== '.') names.add(name)
  }
  // A document is tested by doing what it says.
  if (IS_TEST.test(path) && [...names].some((name) => name.endsWith('.md'))) names.add(LAUNCHER.path)
  return names
}

const JOIN = /\bjoin\(\s*(ROOT|import\.meta\.dirname)((?:\s*,\s*(?:'[^']*'|"[^"]*"))+)/g

function joinedNames({ code, strings }: ScannedSource, folder: string): string[] {
  const byStart = new Map(strings.map(({ start, text }) => [start, text]))
  return [...code.matchAll(JOIN)].map((match) => {
    const [all, base, list] = match as unknown as [string, string, string]
    const listStart = match.index + all.length - list.length
    const parts = [...list.matchAll(/'[^']*'|"[^"]*"/g)].map(
      ({ index }) => byStart.get(listStart + index) ?? '',
    )
    return posix.join(base === 'ROOT' ? '.' : folder, ...parts)
  })
}

function git(root: string, args: string[]): string[] {
  const bytesMax = 64 * 1024 * 1024
  const printed = execFileSync('git', ['-c', 'core.quotepath=off', ...args], {
    cwd: root,
    encoding: 'utf8',
    maxBuffer: bytesMax,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  return printed.split('\n').filter((line) => line !== '')
}

function readIfThere(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    // Deleted, and git was not told yet.
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return ''
    throw error
  }
}
