/** Google Drive in the simulated cloud: what it is called, its flags, and the faults that only it can meet. */
import type { SimService } from '../service.ts'
import type { GoogleDrive, GoogleDriveOptions } from './drive.ts'

export const drive: SimService<GoogleDriveOptions, GoogleDrive> = {
  title: 'Google Drive',
  faultProfiles: {
    throttle: [
      { do: 'throttle', status: 403, reason: 'userRateLimitExceeded', everyNth: 97, burst: 2 },
      { do: 'throttle', status: 403, reason: 'rateLimitExceeded', everyNth: 151 },
    ],
    listing: [
      { do: 'mutate', what: 'arrive', methods: ['files.list'], everyNth: 5 },
      { do: 'mutate', what: 'arrive-old', methods: ['files.list'], everyNth: 11 },
      { do: 'mutate', what: 'relabel', methods: ['files.list'], everyNth: 7, count: 2 },
      { do: 'mutate', what: 'delete', methods: ['files.list'], everyNth: 13 },
      { do: 'empty-page', methods: ['files.list', 'changes.list'], everyNth: 8 },
      { do: 'error', status: 500, methods: ['files.list', 'changes.list'], nextPage: true, everyNth: 9 },
    ],
  },
  flags: [
    {
      flag: '--google-drive <address>',
      about: 'a user of Google Drive; may be given several times',
      takes: 'addresses',
    },
    {
      flag: '--documents <number>',
      about: 'how many documents the users of Google Drive share',
      takes: { min: 0, max: 1_000_000 },
      byDefault: 1_000,
    },
  ],
  fromFlags: (users, { documents }) => ({ users, documents: users.length === 0 ? 0 : Number(documents) }),
  start: async (kernel, options) => new (await import('./drive.ts')).GoogleDrive(kernel, options),
}
