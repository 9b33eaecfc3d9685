/**
 * The documents in which services of Google describe themselves to programs: made from the routes that are served, so
 * that they say no more and no less. Fields of requests and answers are described as far as programs need them to build a
 * client.
 */
import { jsonAnswer, type Operation, type Routes, type SimCall } from '../server.ts'
import { refusalAnswer } from './errors.ts'

/** `id labelIds[] sizeEstimate# isPrimary? payload:MessagePart parts:MessagePart[]`: a field each, with its type. */
export type Fields = string

export type Described = {
  /** `users.messages.list`: where the method is found in a client. */
  id: string
  verb: string
  /** With names for what a route calls `*`: `{userId}/messages/{id}`. */
  path: string
  query: Fields
  request?: string | undefined
  response?: string | undefined
  scopes: readonly string[]
  /** Where it takes bytes, too. */
  uploadPath?: string | undefined
  /** It sends bytes, too: with alt=media. */
  sendsMedia?: boolean
}

export type ServiceDocument = {
  name: string
  version: string
  title: string
  /** Between the origin and the path of a method: `drive/v3/`. */
  servicePath: string
  batchPath?: string
  methods: readonly Described[]
  schemas: Readonly<Record<string, Fields>>
}

type Json = Record<string, unknown>

const TYPES: Readonly<Record<string, Json>> = {
  '#': { type: 'integer', format: 'int32' },
  '?': { type: 'boolean' },
  '': { type: 'string' },
}

const COMMON: Fields =
  'alt fields key oauth_token access_token prettyPrint? quotaUser uploadType upload_protocol'

export class Discovery implements Routes {
  readonly #service: ServiceDocument

  constructor(service: ServiceDocument) {
    this.#service = service
  }

  match(call: SimCall): Operation | undefined {
    const { name, version } = this.#service
    const isOwn =
      call.path === `/discovery/v1/apis/${name}/${version}/rest` ||
      (/^\/(?:\$|%24)discovery\/rest$/i.test(call.path) && call.query.get('version') === version)
    if (!isOwn || (call.verb !== 'GET' && call.verb !== 'HEAD')) return undefined
    return {
      name: 'discovery',
      run: () => jsonAnswer(documentOf(this.#service, call.origin)),
      refuse: refusalAnswer,
    }
  }
}

function documentOf(service: ServiceDocument, origin: string): Json {
  const { name, version, title, servicePath, batchPath, methods, schemas } = service
  const scopes = [...new Set(methods.flatMap((method) => method.scopes))]
  return {
    kind: 'discovery#restDescription',
    discoveryVersion: 'v1',
    id: `${name}:${version}`,
    name,
    version,
    title,
    protocol: 'rest',
    rootUrl: `${origin}/`,
    servicePath,
    baseUrl: `${origin}/${servicePath}`,
    basePath: `/${servicePath}`,
    ...(batchPath === undefined ? {} : { batchPath }),
    parameters: parametersOf(COMMON),
    auth: { oauth2: { scopes: Object.fromEntries(scopes.map((scope) => [scope, { description: scope }])) } },
    schemas: Object.fromEntries(
      Object.entries(schemas).map(([id, fields]) => [
        id,
        { id, type: 'object', properties: propertiesOf(fields) },
      ]),
    ),
    resources: resourcesOf(name, methods),
  }
}

/** `users.messages.list` → resources.users.resources.messages.methods.list */
function resourcesOf(service: string, methods: readonly Described[]): Json {
  const top: { resources?: Record<string, Resource> } = {}
  for (const method of methods) {
    const pieces = method.id.split('.')
    const last = pieces.pop()!
    let at: Resource = top
    for (const piece of pieces) {
      at.resources ??= {}
      at.resources[piece] ??= {}
      at = at.resources[piece]
    }
    at.methods ??= {}
    at.methods[last] = methodJson(service, method)
  }
  return top.resources as Json
}

type Resource = { methods?: Json; resources?: Record<string, Resource> }

function methodJson(service: string, method: Described): Json {
  const { id, verb, path, query, request, response, scopes, uploadPath, sendsMedia = false } = method
  const names = [...path.matchAll(/\{(\w+)\}/g)].map((match) => match[1]!)
  const own = names.map((name) => [name, { type: 'string', required: true, location: 'path' }])
  return {
    id: `${service}.${id}`,
    path,
    flatPath: path,
    httpMethod: verb,
    parameters: { ...Object.fromEntries(own), ...parametersOf(query) },
    parameterOrder: names,
    ...(request === undefined ? {} : { request: { $ref: request } }),
    ...(response === undefined ? {} : { response: { $ref: response } }),
    scopes,
    ...(sendsMedia ? { supportsMediaDownload: true } : {}),
    ...(uploadPath === undefined ? {} : { supportsMediaUpload: true, mediaUpload: mediaUpload(uploadPath) }),
  }
}

function mediaUpload(path: string): Json {
  const simple = { multipart: true, path }
  return {
    accept: ['*/*'],
    protocols: {
      simple,
      resumable: { multipart: true, path: path.replace('/upload/', '/resumable/upload/') },
    },
  }
}

function parametersOf(fields: Fields): Json {
  return Object.fromEntries(
    fieldsOf(fields).map(({ name, json, isList }) => [
      name,
      { ...json, location: 'query', ...(isList ? { repeated: true } : {}) },
    ]),
  )
}

function propertiesOf(fields: Fields): Json {
  return Object.fromEntries(
    fieldsOf(fields).map(({ name, json, isList }) => [name, isList ? { type: 'array', items: json } : json]),
  )
}

function fieldsOf(fields: Fields): { name: string; json: Json; isList: boolean }[] {
  return fields
    .split(/\s+/)
    .filter((field) => field !== '')
    .map((field) => {
      const [, name = '', type = '', ref, list] = /^([\w.$]+)([#?]?)(?::(\w+))?(\[\])?$/.exec(field) ?? []
      return { name, json: ref === undefined ? TYPES[type]! : { $ref: ref }, isList: list !== undefined }
    })
}
