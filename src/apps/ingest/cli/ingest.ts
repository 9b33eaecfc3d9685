/**
 * `tidemark ingest`: objects that a queue announces or a bucket lists. What can be said on the command line is declared
 * here, with its help; what a verb does is in the file that its action imports, so that `--help` loads nothing else.
 */
import { type Command, Option } from 'commander'
import type { AppNoun, RegisterVerb } from '../../../app/cli/noun.ts'
import { limitOption } from '../../../cli/output/input.ts'
import { COMPRESSIONS, RECORD_FORMATS } from '../contract.ts'
import { SHARD_STATES } from '../shard-states.ts'

const SYNC_HELP = `
Lists the bucket of each pipeline, receives what its queue has, and reads every object that is new, once. It can be
stopped at any time with Ctrl-C and goes on where it was. With --watch it goes on receiving; so does tidemark serve. With
--json, one object a line: a progress object per pipeline and step, and at the end {"type":"summary", pipelines [...]}.

Ends with 0 when all is settled, 1 when something failed or it was stopped before that, 3 when all is settled but for
objects that could not be read.`

const STATUS_HELP = `
The books come from the last listing: bucket lists N = stored + skipped + bad + on their way. Without a listing they are
about what was announced.`

const OBJECT_TEXT = 'its address, its path below what is listed, its name, or its id as shards lists it'

const REPLAY_HELP = `
Says how many records are read again, and what came of them: how many were published, and how many are still in
quarantine, with the reasons. With --json the last line is {"type":"replay", records, published, quarantined, waiting}.`

export const ingestNoun: AppNoun = {
  description: 'records of objects that a queue announces or a bucket lists',
  words: {
    one: 'pipeline',
    item: 'object',
    badText: 'could not be read',
    none: {
      text: 'There is no pipeline yet.',
      hint: 'Make one with: tidemark ingest add NAME --folder PATH (or with a queue: tidemark ingest add --help)',
    },
    choice: '[pipeline]',
    choiceText: 'its name; all of them otherwise',
  },
  sync: {
    description: 'list buckets, receive messages, and read every object that is new',
    help: SYNC_HELP,
    part: async () => (await import('./sync.ts')).ingestSync,
  },
  status: {
    description: 'show the books of pipelines: what is listed, and what became of it',
    help: STATUS_HELP,
    report: async () => (await import('./status.ts')).reportPipeline,
  },
  verbs: [
    (ingest, context) => {
      addAdd(ingest, context)
      addRun(ingest, context)
      addShards(ingest, context)
      addGet(ingest, context)
      addPreview(ingest, context)
      addReconcile(ingest, context)
      addQuarantine(ingest, context)
      addDispose(ingest, context)
      addRemove(ingest, context)
    },
  ],
}

const ADD_HELP = `
One of --sqs, --pubsub, --nats, --folder and --inbox says where messages come from; --bucket says what is listed. With
--bucket alone the pipeline lists, and nothing else. --credentials takes a JSON file with accessKeyId and
secretAccessKey, or a Google service account; it is sealed in the vault. With --ambient-credentials, keys are looked for
where AWS's own tools look. Messages may name objects below --bucket and below what --allow names; others are not read,
and shown with tidemark ingest quarantine NAME --messages. With --update, what is not said again stays as it is.

With --after move or delete, an object that is stored leaves its place: after the index was counted anew, and a copy of
exactly this version was made and compared. A move copies within the store. For a deletion the copy is kept in the home
of this machine, below ingest/kept, for good: tidemark ingest get writes the bytes of any object into a file. What cannot
be removed stays, tidemark ingest show says why, and tidemark ingest dispose tries again.

What is said of fields (--text, --title, --time, --id, --facet) is a path such as detail.bucket.name. Without --text the
first object that is listed is looked at, and what tidemark ingest preview proposes for it is taken; where none can be
read yet, all fields of a record are its text, as lines of name: value.`

const addAdd: RegisterVerb = (ingest, context) => {
  const add = ingest
    .command('add')
    .description('make a pipeline')
    .argument('<name>', 'small letters, digits, dots, dashes and underscores')
    .option('--bucket <address>', 'what is listed: s3://bucket/prefix or gs://bucket/prefix')
  addQueueOptions(add)
  addReadOptions(add)
  add
    .addOption(
      new Option('--overwrites <how>', 'records of an older version: replaced, or kept beside').choices([
        'replace',
        'append',
      ]),
    )
    .addOption(
      new Option('--after <what>', 'what becomes of an object that is stored, with proof').choices([
        'keep',
        'tag',
        'move',
        'delete',
      ]),
    )
    .option(
      '--to <address>',
      'with --after move: where to, such as s3://bucket/done/ or a folder in --folder',
    )
    .option('--list-every <minutes>', 'how often the bucket is listed; 0 for on demand only')
    .option('--start <time>', 'objects that were changed before are skipped, such as 2026-11-01')
    .option('--meaning', 'records are found by their meaning, too, which takes time')
    .option('--user <name>', 'whose it is, and who finds its records; the owner otherwise')
    .option('--update', 'change one that is there')
    .addHelpText('after', ADD_HELP)
    .action(async (name: string, options) => (await import('./add.ts')).addPipeline(context, name, options))
}

function addQueueOptions(add: Command): void {
  add
    .option('--sqs <url>', 'a queue of Amazon SQS')
    .option('--pubsub <subscription>', 'a subscription of Google Pub/Sub: projects/P/subscriptions/S')
    .option('--nats <servers>', 'a NATS server with JetStream; with --nats-stream and --nats-consumer')
    .option('--nats-stream <name>', 'which stream')
    .option('--nats-consumer <name>', 'which consumer')
    .option('--folder <path>', 'a folder of this machine: each file in it is read once it is complete')
    .option('--inbox', 'what is posted to /api/ingest/pipelines/NAME/messages')
    .option('--region <name>', 'of AWS')
    .option('--endpoint <url>', 'another place than AWS or Google, for objects')
    .option('--queue-endpoint <url>', 'the same for the queue')
    .option('--path-style', 'the name of the bucket stands in the path and not in the host')
    .option(
      '--host <host...>',
      'which hosts may be asked for objects with https addresses; http://HOST: also without TLS',
    )
    .option('--credentials <file>', 'a JSON file with keys or a service account')
    .option(
      '--ambient-credentials',
      'without --credentials: the keys of this machine, with all that they may',
    )
    .option('--allow <address...>', 'further places whose objects messages may name: s3://bucket/prefix')
    .option('--carries-data', 'messages that announce nothing are data themselves')
}

function addReadOptions(command: Command): void {
  command
    .addOption(new Option('--format <format>', 'of objects').choices(['auto', ...RECORD_FORMATS]))
    .addOption(new Option('--compression <kind>', 'of objects').choices(['auto', ...COMPRESSIONS]))
    .option('--records-field <path>', 'JSON: which field holds the records')
    .option('--text <path...>', 'which fields are the text; proposed or all of them otherwise')
    .option('--title <path>', 'which field is the title')
    .option('--time <path>', 'which field says when it happened')
    .option('--id <path>', 'which field names the record')
    .option('--facet <path...>', 'fields to filter and count by')
}

const addRun: RegisterVerb = (ingest, context) => {
  ingest
    .command('run')
    .description('receive and read until it is stopped: sync --watch')
    .argument('[pipeline]', 'its name; all of them otherwise')
    .action(async (wanted: string | undefined) => (await import('./sync.ts')).runIngest(context, wanted))
}

const addShards: RegisterVerb = (ingest, context) => {
  ingest
    .command('shards')
    .description('list object versions, and what became of each')
    .argument('<pipeline>', 'its name')
    .addOption(new Option('--state <state>', 'only those').choices([...SHARD_STATES]))
    .option('--code <code>', 'only those with this reason, such as object-missing')
    .addOption(limitOption())
    .action(async (name: string, options) => (await import('./shards.ts')).listShards(context, name, options))
  ingest
    .command('show')
    .description('show all that is known of one object')
    .argument('<pipeline>', 'its name')
    .argument('<object>', OBJECT_TEXT)
    .action(async (name: string, object: string) =>
      (await import('./shards.ts')).showShard(context, name, object),
    )
}

const addGet: RegisterVerb = (ingest, context) => {
  ingest
    .command('get')
    .description(
      'write the bytes of an object into a file: from its bucket, or from where they were moved or kept',
    )
    .argument('<pipeline>', 'its name')
    .argument('<object>', OBJECT_TEXT)
    .argument('<file>', 'a file that is not there yet')
    .action(async (name: string, object: string, file: string) =>
      (await import('./get.ts')).getObject(context, { name, object, file }),
    )
}

const addPreview: RegisterVerb = (ingest, context) => {
  const preview = ingest
    .command('preview')
    .description('read the first records of an object, and propose which fields are what; stores nothing')
    .argument(
      '<what>',
      'a pipeline, whose configuration and keys are used; or an object: its address, or a file',
    )
    .argument('[object]', 'of the pipeline: its address or its path; the first one that is listed otherwise')
  addReadOptions(preview)
  preview
    .addOption(limitOption())
    .action(async (what: string, address: string | undefined, options) =>
      (await import('./preview.ts')).showPreview(context, { what, address, options }),
    )
}

const addReconcile: RegisterVerb = (ingest, context) => {
  ingest
    .command('reconcile')
    .description('list the bucket now, and compare it with what was read')
    .argument('[pipeline]', 'its name; all of them otherwise')
    .action(async (wanted: string | undefined) => (await import('./reconcile.ts')).reconcile(context, wanted))
}

const addQuarantine: RegisterVerb = (ingest, context) => {
  ingest
    .command('quarantine')
    .description('list records that could not be read, and messages that nobody understood')
    .argument('<pipeline>', 'its name')
    .option('--object <object>', `only of this one: ${OBJECT_TEXT}`)
    .option('--messages', 'messages instead of records')
    .addOption(limitOption())
    .action(async (name: string, options) =>
      (await import('./quarantine.ts')).listQuarantine(context, name, options),
    )
  ingest
    .command('replay')
    .description('read quarantined records again, and publish those that can be read now')
    .argument('<pipeline>', 'its name')
    .argument('[object]', `${OBJECT_TEXT}; all with such records otherwise`)
    .argument('[records...]', 'their numbers, as quarantine lists them; all of them otherwise')
    .addHelpText('after', REPLAY_HELP)
    .action(async (name: string, object: string | undefined, records: string[]) =>
      (await import('./replay.ts')).replay(context, { name, object, records }),
    )
}

const addDispose: RegisterVerb = (ingest, context) => {
  ingest
    .command('dispose')
    .description('try again to tag, move or delete objects that --after left where they are')
    .argument('<pipeline>', 'its name')
    .argument('[object]', `${OBJECT_TEXT}; all that were left otherwise`)
    .action(async (name: string, object: string | undefined) =>
      (await import('./quarantine.ts')).dispose(context, { name, object }),
    )
}

const addRemove: RegisterVerb = (ingest, context) => {
  ingest
    .command('remove')
    .description('forget a pipeline; its records leave the index, and nothing changes in its bucket')
    .argument('<pipeline>', 'its name')
    .option('--yes', 'do not ask')
    .action(async (name: string, options) =>
      (await import('./remove.ts')).removePipeline(context, name, options),
    )
}
