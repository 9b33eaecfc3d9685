/** What calls of the Gmail API cost. */

/** Units per call of a project made since May 2026; what is not named costs `*`. */
export const newPrices: Readonly<Record<string, number>> = {
  getProfile: 1,
  'messages.list': 5,
  'messages.get': 20,
  'messages.insert': 25,
  'messages.import': 25,
  'messages.send': 100,
  'messages.modify': 5,
  'messages.trash': 20,
  'messages.untrash': 5,
  'messages.delete': 10,
  'messages.batchModify': 50,
  'messages.batchDelete': 50,
  'attachments.get': 20,
  'threads.list': 10,
  'threads.get': 40,
  'threads.modify': 10,
  'threads.trash': 10,
  'threads.untrash': 10,
  'threads.delete': 20,
  'labels.list': 1,
  'labels.get': 1,
  'labels.create': 5,
  'labels.update': 5,
  'labels.patch': 5,
  'labels.delete': 5,
  'drafts.list': 5,
  'drafts.get': 5,
  'drafts.create': 10,
  'drafts.update': 15,
  'drafts.delete': 10,
  'drafts.send': 100,
  'history.list': 2,
  // What a resumable upload costs is taken when it begins.
  'messages.upload': 0,
  'drafts.upload': 0,
  watch: 100,
  stop: 50,
  '*': 5,
}

/** Of projects that were active before. */
export const oldPrices: Readonly<Record<string, number>> = {
  ...newPrices,
  'messages.get': 5,
  'threads.get': 10,
}
