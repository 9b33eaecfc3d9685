/** What the office formats have in common: a zip container whose members refer to each other. */
import { posix } from 'node:path'
import { type Format, SkipDocument } from './contract.ts'
import type { TextOutput } from './text-output.ts'
import type { ZipReader } from './zip.ts'

export type Relation = { id: string; type: string; target: string }

const RELATIONS_MAX = 20_000
const MIMETYPE_CHARS_MAX = 200
const MANIFEST_CHARS_MAX = 200_000

const OPEN_DOCUMENT: Record<string, Format> = {
  text: 'odt',
  spreadsheet: 'ods',
  presentation: 'odp',
}

/** Which format a container holds; an archive of other things is skipped. */
export async function formatOfContainer(zip: ZipReader): Promise<Format> {
  const mimetype = await zip.text('mimetype', MIMETYPE_CHARS_MAX)
  const kind = /^application\/vnd\.oasis\.opendocument\.([a-z]+)/.exec(mimetype)?.[1]
  if (kind !== undefined && OPEN_DOCUMENT[kind]) {
    const manifest = await zip.text('META-INF/manifest.xml', MANIFEST_CHARS_MAX)
    if (/<[\w:]*encryption-data\b/.test(manifest)) throw encrypted()
    return OPEN_DOCUMENT[kind]
  }
  if (zip.has('[Content_Types].xml')) {
    const main = await mainMember(zip)
    if (main.startsWith('word/')) return 'docx'
    if (main.startsWith('ppt/')) return 'pptx'
    if (main.startsWith('xl/') && main.endsWith('.xml')) return 'xlsx'
    if (main.startsWith('xl/')) throw unsupported('a binary workbook, and those are not read')
  }
  if (mimetype.startsWith('application/epub')) throw unsupported('an e-book, and those are not read')
  throw unsupported('an archive, and what is inside of archives is not read')
}

export function encrypted(): SkipDocument {
  return new SkipDocument('encrypted', 'it is protected with a password')
}

function unsupported(what: string): SkipDocument {
  return new SkipDocument('unsupported-type', `it is ${what}`)
}

/** The member with which reading begins; '' where there is none. */
export async function mainMember(zip: ZipReader): Promise<string> {
  const main = (await relationsOf(zip, '')).find(({ type }) => type === 'officeDocument')
  if (main && zip.has(main.target)) return main.target
  return zip.names.find((name) => /^(?:word\/document|xl\/workbook|ppt\/presentation)\.xml$/.test(name)) ?? ''
}

/** What a member refers to, by names of members. */
export async function relationsOf(zip: ZipReader, member: string): Promise<Relation[]> {
  const folder = posix.dirname(member)
  const found: Relation[] = []
  await zip.xml(posix.join(folder, '_rels', `${posix.basename(member)}.rels`), {
    open(name, attributes) {
      if (name !== 'Relationship' || attributes.TargetMode === 'External') return
      if (found.length === RELATIONS_MAX) throw new SkipDocument('bomb', 'its parts refer to too many others')
      const { Id: id = '', Type: type = '', Target: target = '' } = attributes
      found.push({
        id,
        type: type.slice(type.lastIndexOf('/') + 1),
        target: target.startsWith('/') ? target.slice(1) : posix.join(folder, target),
      })
    },
    close() {},
    text() {},
  })
  return found
}

const PROPERTIES_CHARS_MAX = 2_000

/** Title and language, where the document says them. */
export async function readProperties(zip: ZipReader, member: string, output: TextOutput): Promise<void> {
  let inside = ''
  const values = new Map<string, string>()
  await zip.xml(member, {
    open(name) {
      inside = name
    },
    close() {
      inside = ''
    },
    text(text) {
      if (inside !== 'title' && inside !== 'language') return
      values.set(inside, ((values.get(inside) ?? '') + text).slice(0, PROPERTIES_CHARS_MAX))
    },
  })
  output.setTitle(values.get('title'))
  output.setLanguage(values.get('language'))
}
