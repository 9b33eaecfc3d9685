/**
 * The tables of a shard and of an attachment file. Both are plain SQLite files that any tool can read; docs/mail-archive-format.md
 * describes them for people.
 *
 * `pos` is where a message stands in time: the second of its arrival times 1,024, plus a number that tells
 * messages of the same second apart. Full-text search answers in the order of rowids, so that the newest hits
 * come first without sorting, and a search stops reading when its page is full.
 */

export const SHARD_FORMAT = 1
/**
 * By which rules texts, people, attachments and the search index were made from the bytes of messages (`derivedOf`). It
 * goes up whenever those rules change. A shard's `meta` says by which it was begun, none meaning 1: what was derived by
 * older rules is not damaged, and is made anew from the bytes.
 *
 *   2   HTML is searched beside plain text and shown where it says more; named text parts that are shown in their place
 *       are read; empty groups of recipients have a name
 *   3   words are whole across soft hyphens and blanks without width; the charset that HTML names is heard
 */
export const DERIVATION = 3
export const POS_PER_SECOND = 1_024

/** Words are runs of letters and digits, in small letters and without accents. */
export const WORDS_TOKENIZER = 'unicode61 remove_diacritics 2'

export const SHARD_SCHEMA: readonly string[] = [
  `CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID`,
  `CREATE TABLE messages (
    pos INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    thread_id TEXT NOT NULL,
    message_id TEXT NOT NULL,
    message_id_made INTEGER NOT NULL,
    history_id TEXT NOT NULL,
    internal_ms INTEGER NOT NULL,
    header_ms INTEGER,
    subject TEXT NOT NULL,
    sender TEXT NOT NULL,
    people TEXT NOT NULL,
    snippet TEXT NOT NULL,
    labels TEXT NOT NULL,
    bytes INTEGER NOT NULL,
    sha256 BLOB NOT NULL,
    attachments TEXT NOT NULL,
    has_attachment INTEGER NOT NULL,
    problems TEXT NOT NULL,
    source TEXT NOT NULL CHECK (source IN ('gmail', 'import')),
    deleted_ms INTEGER,
    stored_ms INTEGER NOT NULL
  )`,
  `CREATE INDEX messages_thread ON messages(thread_id)`,
  `CREATE INDEX messages_message_id ON messages(message_id)`,
  // What conditions ask for, without the rest of the row: three times as fast to read through, and a fifteenth of
  // the pages, over 200,000 messages.
  `CREATE INDEX messages_facts ON messages(pos, internal_ms, bytes, has_attachment, deleted_ms, source)`,
  `CREATE TABLE bodies (pos INTEGER PRIMARY KEY, raw BLOB NOT NULL, text BLOB NOT NULL)`,
  `CREATE TABLE message_labels (label TEXT NOT NULL, pos INTEGER NOT NULL, PRIMARY KEY (label, pos)) WITHOUT ROWID`,
  `CREATE VIRTUAL TABLE words USING fts5(
    subject, sender, recipients, cc, bcc, files, body,
    content='', contentless_delete=1, tokenize="${WORDS_TOKENIZER}"
  )`,
]

export const ATTACHMENT_SCHEMA: readonly string[] = [
  `CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID`,
  `CREATE TABLE contents (sha256 BLOB PRIMARY KEY, bytes INTEGER NOT NULL, packed INTEGER NOT NULL, content BLOB NOT NULL)`,
]
