import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Case, decide, type Verb } from './decide.ts'
import { ASIDE, type BaseRow, type LocalRow, type RemoteRow } from './trees.ts'

const PLACE = { parentId: 'root', name: 'a.txt' }

const base: BaseRow = {
  itemId: 'X',
  ...PLACE,
  type: 'file',
  hash: 'h0',
  sha256: 's0',
  size: 1,
  remoteHash: 'h0',
  remoteSize: 1,
  eTag: 'e0',
  cTag: 'c0',
}
const local: LocalRow = {
  id: 7,
  parentId: 1,
  name: 'a.txt',
  type: 'file',
  hash: 'h0',
  sha256: 's0',
  itemId: 'X',
  size: 1,
  isMissing: false,
  unreadable: null,
  dev: '1',
  ino: '2',
  birthNs: '3',
  mtimeNs: '4',
  ctimeNs: '5',
}
const remote: RemoteRow = {
  itemId: 'X',
  ...PLACE,
  type: 'file',
  size: 1,
  hash: 'h0',
  eTag: 'e0',
  cTag: 'c0',
  modifiedMs: 0,
  isDeleted: false,
}

type LocalState = 'same' | 'changed' | 'deleted' | 'none' | 'unhashed'
type RemoteState = 'same' | 'changed' | 'equal' | 'deleted' | 'none'

const LOCALS: Record<LocalState, LocalRow | undefined> = {
  same: local,
  changed: { ...local, hash: 'h1', sha256: 's1' },
  unhashed: { ...local, hash: null, sha256: null },
  deleted: { ...local, isMissing: true },
  none: undefined,
}
const REMOTES: Record<RemoteState, RemoteRow | undefined> = {
  same: remote,
  changed: { ...remote, hash: 'h2', cTag: 'c2', eTag: 'e2' },
  equal: { ...remote, hash: 'h1', cTag: 'c2', eTag: 'e2' },
  deleted: { ...remote, isDeleted: true },
  none: undefined,
}

function fileCase(localState: LocalState, remoteState: RemoteState, isKnown = true): Case {
  return {
    base: isKnown ? base : undefined,
    local: LOCALS[localState],
    remote: REMOTES[remoteState],
    localParentId: 'root',
  }
}

const FILES: [string, LocalState, RemoteState, boolean, Verb][] = [
  ['EF1', 'same', 'same', true, 'adopt'],
  ['EF2', 'same', 'changed', true, 'download'],
  ['EF3', 'changed', 'same', true, 'upload'],
  ['EF4', 'changed', 'equal', true, 'adopt'],
  ['EF5', 'changed', 'changed', true, 'conflict'],
  ['EF6', 'deleted', 'same', true, 'delete-remote'],
  ['EF7', 'deleted', 'changed', true, 'download'],
  ['EF8', 'same', 'deleted', true, 'delete-local'],
  ['EF9', 'changed', 'deleted', true, 'detach'],
  ['EF10', 'deleted', 'deleted', true, 'forget'],
  ['EF11', 'changed', 'equal', false, 'adopt'],
  ['EF12', 'changed', 'changed', false, 'conflict'],
  ['EF13', 'changed', 'none', false, 'upload'],
  ['EF14', 'none', 'same', false, 'download'],
]

for (const [row, localState, remoteState, isKnown, verb] of FILES) {
  test(`${row}: local ${localState}, remote ${remoteState}, ${isKnown ? 'known' : 'new'}: ${verb}`, () => {
    const decision = decide(fileCase(localState, remoteState, isKnown), 'two-way')
    assert.deepEqual([decision.row, decision.do], [row, verb])
  })
}

type Existence = 'here' | 'moved' | 'gone' | 'none'

function folderCase(here: Existence, there: Existence, isKnown: boolean, hasSurvivors = false): Case {
  const [name, at] = [{ name: 'other' }, (state: Existence) => state === 'moved']
  return {
    base: isKnown ? { ...base, type: 'folder', hash: null } : undefined,
    local:
      here === 'none'
        ? undefined
        : { ...local, type: 'folder', hash: null, isMissing: here === 'gone', ...(at(here) ? name : {}) },
    remote:
      there === 'none'
        ? undefined
        : { ...remote, type: 'folder', hash: null, isDeleted: there === 'gone', ...(at(there) ? name : {}) },
    localParentId: 'root',
    hasSurvivors,
  }
}

const FOLDERS: [string, Existence, Existence, boolean, boolean, Verb][] = [
  ['ED1', 'here', 'here', true, false, 'adopt'],
  ['ED2', 'here', 'here', false, false, 'adopt'],
  ['ED3', 'none', 'here', false, false, 'mkdir-local'],
  ['ED4', 'gone', 'here', true, true, 'mkdir-local'],
  ['ED4', 'gone', 'moved', true, false, 'mkdir-local'],
  ['ED5', 'here', 'none', false, false, 'mkdir-remote'],
  ['ED6', 'here', 'gone', true, false, 'delete-local'],
  ['ED6', 'here', 'gone', true, true, 'detach'],
  ['ED7', 'gone', 'gone', true, false, 'forget'],
  ['ED8', 'gone', 'here', true, false, 'delete-remote'],
]

for (const [row, here, there, isKnown, hasSurvivors, verb] of FOLDERS) {
  const inside = hasSurvivors ? ', with something in it that stays' : ''
  test(`${row}: folder ${here} locally, ${there} remotely, ${isKnown ? 'known' : 'new'}${inside}: ${verb}`, () => {
    const decision = decide(folderCase(here, there, isKnown, hasSurvivors), 'two-way')
    assert.deepEqual([decision.row, decision.do], [row, verb])
  })
}

const verbOf = (node: Case): Verb => decide(node, 'two-way').do

test('content that nobody has hashed is hashed before anything is concluded from it', () => {
  for (const state of ['same', 'changed', 'deleted'] as const)
    assert.equal(verbOf(fileCase('unhashed', state)), 'check')
})

test('a new file of another size than its namesake is a conflict without being hashed', () => {
  const node = fileCase('unhashed', 'changed', false)
  assert.equal(verbOf({ ...node, remote: { ...node.remote!, size: 2 } }), 'conflict')
  assert.equal(verbOf(node), 'check')
})

test('two hashes that nobody knows are not equal, and two empty files are', () => {
  const node = fileCase('changed', 'changed')
  const unknown = { ...node.remote!, hash: null }
  assert.equal(verbOf({ ...node, local: { ...node.local!, hash: 'h1' }, remote: unknown }), 'conflict')
  assert.equal(
    verbOf({ ...node, local: { ...node.local!, hash: 'h1', size: 0 }, remote: { ...unknown, size: 0 } }),
    'adopt',
  )
})

test('a file moved and edited remotely is moved first', () => {
  const node = fileCase('same', 'changed')
  assert.equal(verbOf({ ...node, remote: { ...node.remote!, name: 'b.txt' } }), 'move-local')
  assert.equal(verbOf({ ...node, remote: { ...node.remote!, parentId: 'Y' } }), 'move-local')
})

test('a file moved locally is moved remotely, also where only the case of its name changed', () => {
  const node = fileCase('same', 'same')
  assert.equal(verbOf({ ...node, localParentId: 'Y' }), 'move-remote')
  assert.equal(verbOf({ ...node, localParentId: undefined }), 'move-remote')
  assert.equal(verbOf({ ...node, local: { ...local, name: 'A.txt' } }), 'move-remote')
})

test('moved to different places by both sides, it goes to where OneDrive has it', () => {
  const node = fileCase('same', 'same')
  assert.equal(verbOf({ ...node, localParentId: 'Y', remote: { ...remote, parentId: 'Z' } }), 'move-local')
  assert.equal(verbOf({ ...node, localParentId: 'Y', remote: { ...remote, parentId: 'Y' } }), 'adopt')
})

test('a name of our own for a moment that both sides have is exchanged for a better one', () => {
  const name = '.tidemark-move-2-a.txt'
  const named = { base: { ...base, name }, local: { ...local, name }, remote: { ...remote, name } }
  const node = { ...fileCase('same', 'same'), ...named }
  assert.deepEqual(decide(node, 'two-way'), {
    do: 'conflict',
    row: 'temporary name',
    conflict: 'create-create',
  })
})

test('a name of our own for a moment that is left here alone is exchanged for a better one, not uploaded', () => {
  const name = '.tidemark-move-2-a.txt'
  for (const type of ['file', 'folder'] as const) {
    const rows = { base: undefined, remote: undefined, local: { ...local, type, name } }
    const node = { ...fileCase('same', 'same'), ...rows }
    for (const mode of ['two-way', 'download-only'] as const)
      assert.deepEqual(decide(node, mode), {
        do: 'conflict',
        row: 'temporary name',
        conflict: 'create-create',
      })
    assert.equal(decide(node, 'upload-only').do, 'report')
  }
})

test('a name of our own for a moment is no rename: who was renamed before stays when OneDrive deletes it, who was not goes', () => {
  const node = fileCase('same', 'deleted')
  const named = (name: string): Case => ({ ...node, local: { ...local, name } })
  assert.equal(decide(named('.tidemark-move-2-a.txt'), 'two-way').do, 'delete-local')
  assert.equal(decide(named('.tidemark-move-2-b.txt'), 'two-way').do, 'detach')
  assert.equal(decide(named('b.txt'), 'two-way').do, 'detach')
  const elsewhere = { ...named('.tidemark-move-2-a.txt'), localParentId: 'Y' }
  assert.equal(decide(elsewhere, 'two-way').do, 'detach', 'somebody may have moved it before')
})

test('another form of the same accent is the same name', () => {
  const node = fileCase('same', 'same')
  const [nfc, nfd] = ['caf\u00e9', 'cafe\u0301']
  const named = {
    base: { ...base, name: nfc },
    remote: { ...remote, name: nfc },
    local: { ...local, name: nfd },
  }
  assert.equal(verbOf({ ...node, ...named }), 'adopt')
})

test('a file that was only moved on the side that still has it is kept, not deleted', () => {
  const deletedThere = fileCase('same', 'deleted')
  assert.equal(verbOf({ ...deletedThere, local: { ...local, name: 'b.txt' } }), 'detach')
  const deletedHere = fileCase('deleted', 'same')
  assert.equal(verbOf({ ...deletedHere, remote: { ...remote, name: 'b.txt' } }), 'download')
})

test('a rename to a name that OneDrive does not take leaves its copy alone', () => {
  const node = { ...fileCase('same', 'same'), local: { ...local, name: 'a?.txt' }, illegalName: 'no ?' }
  assert.equal(verbOf(node), 'report')
  assert.equal(verbOf({ ...fileCase('changed', 'none', false), illegalName: 'no ?' }), 'report')
})

test('a name from elsewhere that cannot be a file name here is reported', () => {
  for (const node of [fileCase('none', 'same', false), fileCase('deleted', 'changed')]) {
    assert.equal(verbOf({ ...node, unsafeName: 'has a /' }), 'report')
  }
})

test('what is held, unreadable, special or a package is left alone', () => {
  for (const node of [
    fileCase('deleted', 'same'),
    fileCase('same', 'deleted'),
    fileCase('changed', 'changed'),
  ]) {
    assert.equal(verbOf({ ...node, hold: { because: 'excluded' } }), 'report')
    if (node.local && !node.local.isMissing)
      assert.equal(verbOf({ ...node, local: { ...node.local, unreadable: 'EACCES' } }), 'report')
  }
  const aside = { ...local, unreadable: ASIDE.link }
  assert.equal(verbOf({ ...fileCase('same', 'same'), local: aside }), 'report')
  assert.equal(verbOf({ ...fileCase('same', 'deleted'), local: aside }), 'forget')
  assert.equal(verbOf({ ...fileCase('same', 'none', false), local: { ...local, type: 'other' } }), 'report')
  assert.equal(
    verbOf({ ...fileCase('none', 'same', false), remote: { ...remote, type: 'package' } }),
    'report',
  )
})

test('what OneDrive rewrote after an upload is neither changed nor uploaded again', () => {
  const rewritten = { ...base, remoteHash: 'server', remoteSize: 9, cTag: 'c9', eTag: 'e9' }
  const node = { ...fileCase('same', 'same'), base: rewritten }
  assert.equal(
    verbOf({ ...node, remote: { ...remote, hash: 'server', size: 9, cTag: 'c9', eTag: 'e9' } }),
    'adopt',
  )
})

test('without tags and hashes, size and eTag tell whether OneDrive has another content', () => {
  const bare = { hash: null, cTag: null }
  const node = { ...fileCase('same', 'same'), base: { ...base, remoteHash: null, cTag: null } }
  assert.equal(verbOf({ ...node, remote: { ...remote, ...bare } }), 'adopt')
  assert.equal(verbOf({ ...node, remote: { ...remote, ...bare, eTag: 'e2' } }), 'download')
})

test('download-only changes nothing in OneDrive, upload-only nothing here', () => {
  for (const [, localState, remoteState, isKnown] of FILES) {
    const node = fileCase(localState, remoteState, isKnown)
    assert.doesNotMatch(decide(node, 'download-only').do, /remote|upload/)
    assert.doesNotMatch(decide(node, 'upload-only').do, /local|download|conflict/)
  }
  for (const [, here, there, isKnown, hasSurvivors] of FOLDERS) {
    const node = folderCase(here, there, isKnown, hasSurvivors)
    assert.doesNotMatch(decide(node, 'download-only').do, /remote/)
    assert.doesNotMatch(decide(node, 'upload-only').do, /local/)
  }
})

test('nothing is deleted remotely without a base row', () => {
  for (const localState of Object.keys(LOCALS) as LocalState[]) {
    for (const remoteState of Object.keys(REMOTES) as RemoteState[]) {
      assert.doesNotMatch(verbOf(fileCase(localState, remoteState, false)), /delete/)
    }
  }
})

test('an edit that has the QuickXorHash of what was agreed on is an edit', () => {
  const lookalike = { ...local, sha256: 's1' }
  const of = (change: Partial<Case>) =>
    decide({ ...fileCase('same', 'same'), local: lookalike, ...change }, 'two-way').do
  assert.equal(of({}), 'upload')
  assert.equal(of({ remote: REMOTES.deleted! }), 'detach')
  // OneDrive has another version with that very hash: nobody can say whether it is the same without reading it.
  assert.equal(of({ remote: { ...remote, cTag: 'c2', eTag: 'e2' } }), 'conflict')
  // Of a home from before it was kept, nothing is concluded.
  assert.equal(of({ base: { ...base, sha256: null } }), 'adopt')
})
