/** Google's Drive client, and one that builds itself from discovery. */
import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { auth, type drive_v3, drive as googleDrive } from '@googleapis/drive'
import { Discovery, OAuth2Client } from 'googleapis-common'
import type { Sim, SimOptions } from '../../src/sim/start.ts'
import { ANN, BEN, type Call, type Client, callsOf, methodsOf, refusal } from './harness.ts'

const DOCUMENTS = 12
const FOLDER = 'application/vnd.google-apps.folder'
const world: SimOptions = {
  drive: { users: [ANN, BEN], documents: DOCUMENTS, quota: { unitsPerMinute: null } },
}

export const driveClients: readonly Client[] = [
  {
    client: '@googleapis/drive 26',
    world,
    calls: (sim) => driveCalls(sim, clientOf(sim)),
    leftOut: leftOut(),
  },
  { client: 'googleapis-common 9 (Drive by discovery)', world, calls: discoveryCalls },
]

function clientOf(sim: Sim): drive_v3.Drive {
  const { clientId, clientSecret, tokenUrl } = sim.drive
  const signedIn = new auth.OAuth2({ clientId, clientSecret, endpoints: { oauth2TokenUrl: tokenUrl } })
  signedIn.setCredentials({ refresh_token: sim.drive.accounts[0]!.refreshToken })
  return googleDrive({ version: 'v3', auth: signedIn, rootUrl: sim.baseUrl, retry: false })
}

function leftOut(): string[] {
  const nowhere = googleDrive({ version: 'v3' })
  const called = driveCalls({ baseUrl: '' } as Sim, nowhere).map(({ call }) => call.split(' ')[0]!)
  return methodsOf(nowhere).filter((method) => !called.includes(method))
}

function driveCalls(sim: Sim, drive: drive_v3.Drive): readonly Call[] {
  return [...fileCalls(sim, drive), ...sharingCalls(drive), ...changeCalls(drive), ...sharedDriveCalls(drive)]
}

function fileCalls(sim: Sim, { files, about, context }: drive_v3.Drive): Call[] {
  let folderId = ''
  let fileId = ''
  const upload = { rootUrl: sim.baseUrl }
  return callsOf({
    'about.get': async () => {
      const { data } = await about.get({ fields: 'user,storageQuota' })
      assert.equal(data.user!.emailAddress, ANN)
    },
    'files.list': async () => {
      const { data } = await files.list({
        pageSize: 5,
        q: 'trashed = false',
        fields: 'nextPageToken,files(id)',
      })
      assert.ok(data.files!.length > 0)
    },
    'files.list by pages': async () => {
      let pageToken: string | undefined
      let count = 0
      do {
        const { data } = await files.list({ pageSize: 3, ...(pageToken ? { pageToken } : {}) })
        count += data.files!.length
        pageToken = data.nextPageToken ?? undefined
      } while (pageToken)
      assert.ok(count > 3)
    },
    'files.generateIds': async () =>
      assert.equal((await files.generateIds({ count: 3 })).data.ids!.length, 3),
    'files.create (folder)': async () => {
      const { data } = await files.create({ requestBody: { name: 'fidelity', mimeType: FOLDER } })
      folderId = data.id!
    },
    'files.create by media (multipart)': async () => {
      const { data } = await files.create(
        {
          requestBody: { name: 'a.txt', parents: [folderId] },
          media: { mimeType: 'text/plain', body: Readable.from(['first']) },
          fields: 'id,size,md5Checksum',
        },
        upload,
      )
      fileId = data.id!
      assert.equal(data.size, '5')
    },
    'files.create by media (resumable)': async () => {
      const client = context._options.auth as unknown as {
        request(options: object): Promise<{ headers: Headers; data: { id?: string } }>
      }
      const url = `${sim.baseUrl}/upload/drive/v3/files?uploadType=resumable`
      const begun = await client.request({ url, method: 'POST', data: { name: 'resumed.bin' } })
      const bytes = Buffer.alloc(1000, 1)
      const headers = { 'content-range': `bytes 0-999/1000` }
      const made = await client.request({
        url: begun.headers.get('location'),
        method: 'PUT',
        data: bytes,
        headers,
      })
      assert.ok(made.data.id)
    },
    'files.get': async () => assert.equal((await files.get({ fileId })).data.name, 'a.txt'),
    'files.get alt=media': async () => {
      const { data } = await files.get({ fileId, alt: 'media' }, { responseType: 'text' })
      assert.equal(data, 'first')
    },
    'files.get alt=media with Range': async () => {
      const headers = { range: 'bytes=1-2' }
      const { data } = await files.get({ fileId, alt: 'media' }, { responseType: 'text', headers })
      assert.equal(data, 'ir')
    },
    'files.get of an unknown id is 404': async () =>
      assert.equal(await refusal(files.get({ fileId: 'unknown' })), 404),
    'files.update (rename)': async () => {
      const { data } = await files.update({ fileId, requestBody: { name: 'b.txt' } })
      assert.equal(data.name, 'b.txt')
    },
    'files.update by media': async () => {
      const media = { mimeType: 'text/plain', body: 'second version' }
      const { data } = await files.update({ fileId, media, fields: 'size' }, upload)
      assert.equal(data.size, '14')
    },
    'files.update (move)': async () => {
      const { data } = await files.update({
        fileId,
        addParents: 'root',
        removeParents: folderId,
        fields: 'parents',
      })
      assert.notEqual(data.parents![0], folderId)
    },
    'files.copy': async () => {
      const { data } = await files.copy({ fileId, requestBody: { name: 'copy.txt' } })
      assert.equal(data.name, 'copy.txt')
    },
    'files.export': async () => {
      const mimeType = 'application/vnd.google-apps.document'
      const { data } = await files.list({ q: `mimeType = '${mimeType}'`, pageSize: 1 })
      const made = data.files?.[0] ?? (await files.create({ requestBody: { name: 'doc', mimeType } })).data
      const text = await files.export({ fileId: made.id!, mimeType: 'text/plain' }, { responseType: 'text' })
      assert.equal(typeof text.data, 'string')
    },
    'files.update (trash)': async () => {
      const { data } = await files.update({ fileId, requestBody: { trashed: true }, fields: 'trashed' })
      assert.equal(data.trashed, true)
    },
    'files.emptyTrash': async () => {
      await files.emptyTrash({})
      assert.equal(await refusal(files.get({ fileId })), 404)
    },
    'files.delete': async () => assert.equal((await files.delete({ fileId: folderId })).status, 204),
  })
}

function sharingCalls({ files, permissions }: drive_v3.Drive): Call[] {
  let fileId = ''
  let permissionId = ''
  return callsOf({
    'permissions.create': async () => {
      fileId = (await files.create({ requestBody: { name: 'shared', mimeType: FOLDER } })).data.id!
      const requestBody = { type: 'user', role: 'reader', emailAddress: BEN }
      const { data } = await permissions.create({ fileId, requestBody, sendNotificationEmail: false })
      permissionId = data.id!
    },
    'permissions.create (link)': () =>
      permissions.create({ fileId, requestBody: { type: 'anyone', role: 'reader' } }),
    'permissions.list': async () =>
      assert.equal((await permissions.list({ fileId })).data.permissions!.length, 3),
    'permissions.get': async () =>
      assert.equal((await permissions.get({ fileId, permissionId, fields: 'role' })).data.role, 'reader'),
    'permissions.update': async () => {
      const { data } = await permissions.update({ fileId, permissionId, requestBody: { role: 'writer' } })
      assert.equal(data.role, 'writer')
    },
    'permissions.delete': async () =>
      assert.equal((await permissions.delete({ fileId, permissionId })).status, 204),
  })
}

function changeCalls({ files, changes }: drive_v3.Drive): Call[] {
  let pageToken = ''
  return callsOf({
    'changes.getStartPageToken': async () => {
      pageToken = (await changes.getStartPageToken({})).data.startPageToken!
      assert.ok(pageToken)
    },
    'changes.list': async () => {
      const { data } = await files.create({ requestBody: { name: 'changed', mimeType: FOLDER } })
      const page = await changes.list({ pageToken, fields: 'newStartPageToken,changes(fileId,removed)' })
      assert.ok(page.data.changes!.some(({ fileId }) => fileId === data.id))
      assert.ok(page.data.newStartPageToken)
    },
  })
}

function sharedDriveCalls({ drives }: drive_v3.Drive): Call[] {
  let driveId = ''
  return callsOf({
    'drives.create': async () => {
      const { data } = await drives.create({ requestId: 'once', requestBody: { name: 'team' } })
      driveId = data.id!
    },
    'drives.list': async () =>
      assert.ok((await drives.list({})).data.drives!.some(({ id }) => id === driveId)),
    'drives.get': async () => assert.equal((await drives.get({ driveId })).data.name, 'team'),
    'drives.update': async () => {
      const { data } = await drives.update({ driveId, requestBody: { name: 'crew' } })
      assert.equal(data.name, 'crew')
    },
    'drives.delete': async () => assert.equal((await drives.delete({ driveId })).status, 204),
  })
}

function discoveryCalls(sim: Sim): readonly Call[] {
  const signedIn = new OAuth2Client()
  signedIn.setCredentials({ access_token: sim.drive.accounts[0]!.accessToken })
  const paths = {
    'discovery/v1/apis/drive/v3/rest': '/discovery/v1/apis/drive/v3/rest',
    '$discovery/rest': '/$discovery/rest?version=v3',
  }
  return Object.entries(paths).map(([name, path]) => ({
    call: `${name}, then files.list`,
    run: async () => {
      const create = await new Discovery({}).discoverAPI(sim.baseUrl + path)
      const client = create({ auth: signedIn }, undefined as never) as unknown as drive_v3.Drive
      const { data } = await client.files.list({ pageSize: 2 })
      assert.equal(data.files!.length, 2)
      const found = await client.files.get({ fileId: data.files![0]!.id! })
      assert.equal(found.data.name, data.files![0]!.name)
    },
  }))
}
