/** Microsoft's Graph SDK for JavaScript, on a personal drive and on one of work or school. */
import assert from 'node:assert/strict'
import {
  BatchRequestContent,
  BatchResponseContent,
  FileUpload,
  Client as GraphClient,
  LargeFileUploadTask,
  type Middleware,
  MiddlewareFactory,
  OneDriveLargeFileUploadTask,
  PageIterator,
  ResponseType,
} from '@microsoft/microsoft-graph-client'
import type { Sim, SimOptions } from '../../src/sim/start.ts'
import { ANN, type Call, type Client, callsOf, refusal } from './harness.ts'

type Json = Record<string, unknown> & { id: string; value?: Json[] }
type Page = { value: Json[]; '@odata.nextLink'?: string; '@odata.deltaLink'?: string }
type DriveType = 'personal' | 'business'

const FILES = 30
const FRAGMENT_BYTES = 320 * 1024
/** Who shares something. */
const BEN = 'ben@example.com'
const SCOPES = ['Files.ReadWrite.All', 'User.Read']

export const graphClients: readonly Client[] = (['personal', 'business'] as const).map((type) => ({
  client: `@microsoft/microsoft-graph-client 3 (${type})`,
  world: {
    onedrive: {
      drives: [
        { account: ANN, type, files: FILES, sizes: 'small' },
        { account: BEN, type },
      ],
    },
  } satisfies SimOptions,
  calls: (sim) => graphCalls(sim, type),
}))

function graphCalls(sim: Sim, type: DriveType): readonly Call[] {
  const { accessToken } = sim.onedrive.issue(ANN, SCOPES)
  const proxy = proxyTo(sim)
  const chain = MiddlewareFactory.getDefaultMiddlewareChain({ getAccessToken: async () => accessToken })
  const ownWay: Middleware = {
    async execute(context) {
      context.response = await proxy(String(context.request), context.options)
    },
  }
  const graph = GraphClient.initWithMiddleware({ middleware: [...chain.slice(0, -1), ownWay] })
  return [
    ...readingCalls(graph, type),
    ...writingCalls(graph, type),
    ...uploadCalls(graph, proxy),
    ...deltaCalls(graph, type),
    ...batchCalls(graph),
    ...sharingCalls(graph, type),
    ...sharedCalls(graph, { sim, type }),
  ]
}

type Fetch = (url: string, options?: RequestInit) => Promise<Response>

/**
 * The SDK gives its token to addresses of https only, so it comes as through a proxy that ends TLS: everything else of it
 * is as it is, and what it is told leads back to where it asked.
 */
function proxyTo(sim: Sim): Fetch {
  return (url, options = {}) => {
    const { origin, host } = new URL(url)
    const headers = new Headers(options.headers)
    headers.set('x-forwarded-proto', 'https')
    headers.set('x-forwarded-host', host)
    return fetch(url.replace(origin, sim.baseUrl), { ...options, headers })
  }
}

function readingCalls(graph: GraphClient, type: DriveType): Call[] {
  const names = async (path: string): Promise<unknown[]> =>
    ((await graph.api(path).get()) as Page).value.map(({ name }) => name)
  return callsOf({
    'GET /me': async () => assert.equal((await graph.api('/me').get()).userPrincipalName, ANN),
    'GET /me/drive': async () => assert.equal((await graph.api('/me/drive').get()).driveType, type),
    'GET /me/drives': async () => assert.equal((await graph.api('/me/drives').get()).value.length, 1),
    'GET /me/drive/root has a parentReference': async () => {
      const { parentReference } = await graph.api('/me/drive/root').get()
      assert.equal(parentReference.driveType, type)
      assert.ok(parentReference.driveId)
    },
    'GET children with select, top and orderby': async () => {
      const page: Page = await graph
        .api('/me/drive/root/children')
        .select(['id', 'name'])
        .top(2)
        .orderby('name desc')
        .get()
      assert.deepEqual(Object.keys(page.value[0]!).sort(), ['id', 'name'])
    },
    'PageIterator over nextLink': async () => {
      for (let at = 0; at < 5; at++) await graph.api(`/me/drive/root:/paged/f${at}.txt:/content`).put('x')
      const first: Page = await graph.api('/me/drive/root:/paged:/children').top(2).get()
      const seen: unknown[] = []
      const pages = new PageIterator(graph, first, (item: Json) => {
        seen.push(item.name)
        return true
      })
      await pages.iterate()
      assert.deepEqual(seen, ['f0.txt', 'f1.txt', 'f2.txt', 'f3.txt', 'f4.txt'])
    },
    'GET children with filter': async () => {
      const page: Page = await graph.api('/me/drive/root:/paged:/children').filter("name eq 'f3.txt'").get()
      assert.deepEqual(
        page.value.map(({ name }) => name),
        ['f3.txt'],
      )
    },
    'GET children with a filter that Graph does not know is refused': async () => {
      const asked = graph.api('/me/drive/root:/paged:/children').filter("contains(name,'3')").get()
      assert.equal(await refusal(asked), 400)
    },
    'GET item with expand=children': async () => {
      const { children } = await graph.api('/me/drive/root:/paged').expand('children($select=id,name)').get()
      assert.equal(children.length, 5)
    },
    'GET item with an expand that Graph does not know is refused': async () =>
      assert.equal(await refusal(graph.api('/me/drive/root').expand('nothing').get()), 400),
    'GET by a path with %2F': async () => {
      assert.equal((await graph.api('/me/drive/root:/paged%2Ff1.txt').get()).name, 'f1.txt')
    },
    'GET search': async () => assert.ok((await names("/me/drive/root/search(q='f2')")).includes('f2.txt')),
    'GET special/documents': async () => {
      const { specialFolder } = await graph.api('/me/drive/special/documents').get()
      assert.equal(specialFolder.name, 'documents')
    },
    'GET special/approot': async () => assert.ok((await graph.api('/me/drive/special/approot').get()).id),
    'GET recent': async () => assert.ok((await names('/me/drive/recent')).length > 0),
    'GET sharedWithMe': async () => assert.deepEqual(await names('/me/drive/sharedWithMe'), []),
    'GET thumbnails': async () =>
      assert.deepEqual((await graph.api('/me/drive/root:/paged/f1.txt:/thumbnails').get()).value, []),
    'GET content': async () => {
      const bytes: ArrayBuffer = await graph
        .api('/me/drive/root:/paged/f1.txt:/content')
        .responseType(ResponseType.ARRAYBUFFER)
        .get()
      assert.equal(Buffer.from(bytes).toString(), 'x')
    },
    'GET content as a stream': async () => {
      const stream: AsyncIterable<Uint8Array> = await graph
        .api('/me/drive/root:/paged/f1.txt:/content')
        .getStream()
      const pieces: Uint8Array[] = []
      for await (const piece of stream) pieces.push(piece)
      assert.equal(Buffer.concat(pieces).toString(), 'x')
    },
    'an error has a request-id of its own': async () => {
      const ids = await Promise.all(
        ['one', 'two'].map((id) =>
          graph
            .api(`/me/drive/items/${id}`)
            .get()
            .catch((error: { requestId?: string }) => error.requestId),
        ),
      )
      assert.ok(ids[0] && ids[1] && ids[0] !== ids[1])
    },
  })
}

function writingCalls(graph: GraphClient, type: DriveType): Call[] {
  let id = ''
  const item = (): string => `/me/drive/items/${id}`
  return callsOf({
    'POST children (folder)': async () => {
      const made: Json = await graph.api('/me/drive/root/children').post({ name: 'made', folder: {} })
      assert.equal(made.name, 'made')
    },
    'PUT content (new)': async () => {
      const made: Json = await graph.api('/me/drive/root:/made/a.txt:/content').put('one')
      id = made.id
      assert.equal(made.size, 3)
    },
    'PUT content (replace)': async () => {
      const made: Json = await graph.api(`${item()}/content`).put('three')
      assert.equal(made.size, 5)
    },
    'PATCH (rename)': async () =>
      assert.equal((await graph.api(item()).patch({ name: 'b.txt' })).name, 'b.txt'),
    'PATCH (move into the root)': async () => {
      const root: Json = await graph.api('/me/drive/root').get()
      const moved = await graph.api(item()).patch({ parentReference: { id: root.id } })
      assert.equal(moved.parentReference.id, root.id)
    },
    'PATCH with If-Match of an old eTag is 412': async () => {
      const asked = graph.api(item()).header('If-Match', '"{none},1"').patch({ name: 'c.txt' })
      assert.equal(await refusal(asked), 412)
    },
    'POST copy': async () => {
      const answer: Response = await graph
        .api(`${item()}/copy`)
        .responseType(ResponseType.RAW)
        .post({ name: 'copied.txt' })
      assert.equal(answer.status, 202)
      assert.ok(answer.headers.get('location'))
    },
    'GET versions': async () => {
      const versions: Page = await graph.api(`${item()}/versions`).get()
      assert.ok(versions.value.length >= 2)
    },
    'DELETE version': async () => {
      const before: Page = await graph.api(`${item()}/versions`).get()
      await graph.api(`${item()}/versions/${before.value.at(-1)!.id}`).delete()
      const after: Page = await graph.api(`${item()}/versions`).get()
      assert.equal(after.value.length, before.value.length - 1)
    },
    'DELETE item': async () => {
      await graph.api(item()).delete()
      assert.equal(await refusal(graph.api(item()).get()), 404)
    },
    ...(type === 'personal'
      ? {
          'POST restore': async () => {
            assert.equal((await graph.api(`${item()}/restore`).post({})).id, id)
          },
        }
      : {}),
  })
}

function uploadCalls(graph: GraphClient, proxy: Fetch): Call[] {
  const content = (bytes: number): FileUpload => new FileUpload(Buffer.alloc(bytes, 7), 'large.bin', bytes)
  const task = async (bytes: number, payload: object): Promise<LargeFileUploadTask<unknown>> => {
    const path = '/me/drive/root:/large.bin:/createUploadSession'
    const session = await LargeFileUploadTask.createUploadSession(graph, path, payload)
    return new LargeFileUploadTask(graph, content(bytes), session, { rangeSize: FRAGMENT_BYTES })
  }
  return [
    ...callsOf({
      'LargeFileUploadTask (new)': async () => {
        const bytes = FRAGMENT_BYTES + 1000
        const { responseBody } = await (await task(bytes, { item: { name: 'large.bin' } })).upload()
        assert.equal((responseBody as Json).size, bytes)
      },
      'LargeFileUploadTask (replace, without conflictBehavior)': async () => {
        const bytes = FRAGMENT_BYTES + 2000
        const { responseBody } = await (await task(bytes, {})).upload()
        assert.equal((responseBody as Json).size, bytes)
      },
      'LargeFileUploadTask (getStatus, resume)': async () => {
        const bytes = 2 * FRAGMENT_BYTES + 1000
        const upload = await task(bytes, {})
        const first = Buffer.alloc(FRAGMENT_BYTES, 7)
        await upload.uploadSlice(
          first.buffer.slice(first.byteOffset, first.byteOffset + first.length) as ArrayBuffer,
          { minValue: 0, maxValue: FRAGMENT_BYTES - 1 } as never,
          bytes,
        )
        await upload.getStatus()
        const { responseBody } = (await upload.resume()) as { responseBody: Json }
        assert.equal(responseBody.size, bytes)
      },
      'LargeFileUploadTask.uploadSlice with deferCommit, then POST': async () => {
        const bytes = FRAGMENT_BYTES + 3000
        const deferred = await task(bytes, { item: { name: 'large.bin' }, deferCommit: true })
        const { uploadSession } = deferred as unknown as { uploadSession: { url: string } }
        await deferred.uploadSlice(
          new ArrayBuffer(FRAGMENT_BYTES),
          { minValue: 0, maxValue: FRAGMENT_BYTES - 1 } as never,
          bytes,
        )
        const last = await proxy(uploadSession.url, {
          method: 'PUT',
          headers: { 'content-range': `bytes ${FRAGMENT_BYTES}-${bytes - 1}/${bytes}` },
          body: Buffer.alloc(3000),
        })
        assert.equal(last.status, 202)
        const made = await proxy(uploadSession.url, { method: 'POST' })
        assert.equal(((await made.json()) as Json).size, bytes)
      },
      'LargeFileUploadTask (cancel)': async () => {
        await (await task(FRAGMENT_BYTES + 1, {})).cancel()
      },
    }),
    {
      call: 'OneDriveLargeFileUploadTask (5 MB)',
      isLong: true,
      run: async () => {
        const bytes = 5 * 1000 * 1000
        const upload = await OneDriveLargeFileUploadTask.createTaskWithFileObject(graph, content(bytes), {
          path: '/',
          fileName: 'five.bin',
          rangeSize: 4 * FRAGMENT_BYTES,
        })
        const { responseBody } = await upload.upload()
        assert.equal((responseBody as Json).size, bytes)
      },
    },
  ]
}

function deltaCalls(graph: GraphClient, type: DriveType): Call[] {
  let deltaLink = ''
  return callsOf({
    'GET delta to its end': async () => {
      let page: Page = await graph.api('/me/drive/root/delta').top(10).get()
      const rows = [...page.value]
      while (page['@odata.nextLink']) {
        page = await graph.api(page['@odata.nextLink']).get()
        rows.push(...page.value)
      }
      deltaLink = page['@odata.deltaLink']!
      assert.ok(rows.length > FILES)
      const below = rows.find(({ root }) => root === undefined)!.parentReference as { path?: string }
      // The one has it, the other not.
      assert.equal(below.path !== undefined, type === 'personal')
    },
    'GET deltaLink after a change': async () => {
      await graph.api('/me/drive/root:/fresh.txt:/content').put('x')
      const page: Page = await graph.api(deltaLink).get()
      assert.ok(page.value.some(({ name }) => name === 'fresh.txt'))
    },
    'GET delta with token=latest': async () => {
      const page: Page = await graph.api('/me/drive/root/delta').query({ token: 'latest' }).get()
      assert.deepEqual(page.value, [])
    },
    'GET delta with a filter is refused': async () =>
      assert.equal(await refusal(graph.api('/me/drive/root/delta').filter('file ne null').get()), 400),
  })
}

function batchCalls(graph: GraphClient): Call[] {
  return callsOf({
    'POST $batch': async () => {
      const steps = ['/me/drive', '/me/drive/root', '/me/drive/items/none'].map((path, at) => ({
        id: String(at),
        request: new Request(`https://graph.microsoft.com${path}`),
      }))
      const content = await new BatchRequestContent(steps).getContent()
      const answer = new BatchResponseContent(await graph.api('/$batch').post(content))
      const statuses = ['0', '1', '2'].map((id) => answer.getResponseById(id).status)
      assert.deepEqual(statuses, [200, 200, 404])
    },
  })
}

function sharingCalls(graph: GraphClient, type: DriveType): Call[] {
  let permission = ''
  return callsOf({
    'POST createLink': async () => {
      const scope = type === 'personal' ? 'anonymous' : 'organization'
      const made = await graph.api('/me/drive/root:/fresh.txt:/createLink').post({ type: 'view', scope })
      permission = made.id
      assert.ok(made.link.webUrl)
    },
    'GET permissions': async () => {
      const { value }: Page = await graph.api('/me/drive/root:/fresh.txt:/permissions').get()
      assert.ok(value.some(({ id }) => id === permission))
    },
    'DELETE permission': () => graph.api(`/me/drive/root:/fresh.txt:/permissions/${permission}`).delete(),
  })
}

/** What somebody else shares: found, read, changed, heard of, and refused where it is not. */
function sharedCalls(graph: GraphClient, { sim, type }: { sim: Sim; type: DriveType }): Call[] {
  const drive = sim.onedrive.drive(BEN)
  const { device } = drive
  device.write('Team/plan.txt', 'the plan')
  device.write('Read/only.txt', 'read')
  device.write('private.txt', 'mine')
  let team = ''
  const at = (path: string): string => `/drives/${drive.id}/items/${device.item(path).id}`
  return callsOf({
    'GET sharedWithMe names where it is': async () => {
      drive.share('Team', ANN)
      const { value }: Page = await graph.api('/me/drive/sharedWithMe').get()
      const remote = value[0]!.remoteItem as Json & { parentReference: { driveId: string } }
      team = `/drives/${remote.parentReference.driveId}/items/${remote.id}`
      assert.equal(team, at('Team'))
    },
    'GET children of a shared folder': async () => {
      const { value }: Page = await graph.api(`${team}/children`).get()
      assert.deepEqual(
        value.map(({ name }) => name),
        ['plan.txt'],
      )
    },
    'PUT into a shared folder': async () => {
      await graph.api(`${team}:/ours.txt:/content`).put('ours')
      assert.equal(device.read('Team/ours.txt')?.toString(), 'ours')
    },
    'GET permissions of a shared folder': async () => {
      const { value }: Page = await graph.api(`${team}/permissions`).get()
      assert.deepEqual(value[0]!.roles, ['write'])
    },
    'PUT where only reading is shared is refused': async () => {
      drive.share('Read', ANN, 'read')
      assert.equal(await refusal(graph.api(`${at('Read/only.txt')}/content`).put('x')), 403)
    },
    'GET what is not shared is refused': async () =>
      assert.equal(await refusal(graph.api(at('private.txt')).get()), type === 'personal' ? 404 : 403),
    'GET delta of a shared folder': async () => {
      if (type === 'business') return assert.equal(await refusal(graph.api(`${team}/delta`).get()), 501)
      const page: Page = await graph.api(`${team}/delta`).get()
      assert.ok(page.value.every(({ name }) => name !== 'private.txt'))
      device.write('Team/later.txt', 'later')
      const later: Page = await graph.api(page['@odata.deltaLink']!).get()
      assert.ok(later.value.some(({ name }) => name === 'later.txt'))
    },
    'GET shares by a link': async () => {
      const own = sim.onedrive.issue(BEN, SCOPES).accessToken
      const answer = await fetch(`${sim.onedrive.graphUrl}${at('Read')}/createLink`, {
        method: 'POST',
        headers: { authorization: `Bearer ${own}` },
        body: JSON.stringify({ type: 'view' }),
      })
      const { link } = (await answer.json()) as { link: { webUrl: string } }
      const share = `u!${Buffer.from(link.webUrl).toString('base64url')}`
      assert.equal((await graph.api(`/shares/${share}/driveItem`).get()).name, 'Read')
    },
  })
}
