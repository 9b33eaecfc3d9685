/** What the control API asks of every simulated object store, below the name of the service. */
import { z } from 'zod'
import { parse } from '../control.ts'
import { jsonAnswer, type SimAnswer, type SimCall } from '../server.ts'
import type { StoredVersion } from './bucket.ts'
import { noticeFaultsInput } from './notices.ts'
import type { ObjectWorld } from './world.ts'

const text = z.string().min(1)
const object = { bucket: text, key: text }
const inputs = {
  bucket: z.strictObject({ name: text, isVersioned: z.boolean().optional() }),
  put: z.strictObject({
    ...object,
    text: z.string().optional(),
    base64: z.string().optional(),
    contentType: text.optional(),
  }),
  object: z.strictObject(object),
  refuse: z.strictObject({ ...object, how: z.enum(['missing', 'denied']) }),
}

/** `what`: the verb and the path behind the service's name. Undefined where it is about something else. */
export function controlObjects(world: ObjectWorld, call: SimCall, what: string): SimAnswer | undefined {
  switch (what) {
    case 'GET objects':
      return jsonAnswer({ objects: world.history(call.query.get('bucket') ?? undefined).map(versionJson) })
    case 'POST buckets': {
      const { name, ...options } = parse(inputs.bucket, call)
      world.createBucket(name, options)
      return jsonAnswer({})
    }
    case 'POST put': {
      const { bucket, key, text: words, base64 = '', ...fields } = parse(inputs.put, call)
      return jsonAnswer(versionJson(world.put(bucket, key, words ?? Buffer.from(base64, 'base64'), fields)))
    }
    case 'POST remove': {
      const { bucket, key } = parse(inputs.object, call)
      world.remove(bucket, key)
      return jsonAnswer({})
    }
    case 'POST refuse': {
      const { bucket, key, how } = parse(inputs.refuse, call)
      world.refuse(bucket, key, how)
      return jsonAnswer({})
    }
    case 'POST allow': {
      const { bucket, key } = parse(inputs.object, call)
      world.allow(bucket, key)
      return jsonAnswer({})
    }
    case 'PUT notices':
      return jsonAnswer(Object.assign(world.notices.faults, parse(noticeFaultsInput, call)))
    case 'POST notices/flush':
      world.notices.flush()
      return jsonAnswer(world.notices.counts)
    default:
      return undefined
  }
}

export function objectsSummary({ buckets, notices }: ObjectWorld): object {
  return {
    buckets: [...buckets.values()].map(({ name, isVersioned, history }) => ({
      name,
      isVersioned,
      objects: history.filter(({ state, isDeleteMarker }) => state === 'current' && !isDeleteMarker).length,
      versions: history.length,
    })),
    notices: { faults: notices.faults, counts: notices.counts },
  }
}

/** Commands that put an object into a bucket, and have it read. `flags`: what a pipeline is told of it. */
export function ingestCommands(
  { service, origin, bucket }: { service: string; origin: string; bucket: string },
  flags: readonly string[],
): string[] {
  const text = '{"message":"a spring tide at noon"}'
  return [
    `curl -s -d '${JSON.stringify({ bucket, key: 'a.ndjson', text })}' ${origin}/control/${service}/put`,
    `tidemark ingest add ${bucket} ${flags.join(' ')} --endpoint ${origin} --text message`,
    `tidemark ingest sync ${bucket}`,
    `tidemark ingest status ${bucket}`,
  ]
}

function versionJson({ content, ...version }: StoredVersion): object {
  return { ...version, sizeBytes: content.sizeBytes }
}
